# find_package(telering) gives the targets telering::telering (shared) and telering::static.
get_filename_component(_telering_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
find_path(_telering_include telering.h PATHS "${_telering_libdir}/../include" "${_telering_libdir}/../../include"
    NO_DEFAULT_PATH NO_CACHE)

if(NOT TARGET telering::telering)
    add_library(telering::telering SHARED IMPORTED)
    set_target_properties(telering::telering PROPERTIES
        IMPORTED_LOCATION "${_telering_libdir}/libtelering.so.@VERSION@"
        IMPORTED_SONAME "libtelering.so.@MAJOR@"
        INTERFACE_INCLUDE_DIRECTORIES "${_telering_include}")
    add_library(telering::static STATIC IMPORTED)
    set_target_properties(telering::static PROPERTIES
        IMPORTED_LOCATION "${_telering_libdir}/libtelering.a"
        INTERFACE_LINK_LIBRARIES "gcc_s;pthread;m;dl"
        INTERFACE_INCLUDE_DIRECTORIES "${_telering_include}")
endif()
