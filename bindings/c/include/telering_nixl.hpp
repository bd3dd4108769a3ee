// NIXL's names for per-transfer telemetry and for a backend's own events, so that code of the guide compiles with only
// its include lines changed:
//
//     nixl_xfer_telem_t telem;
//     if (agent.getXferTelemetry(req, telem) == NIXL_SUCCESS) { ... telem.xferDuration.count() ... }
//
// `agent` is a telering::producer::Agent and `req` a telering::producer::Transfer. Not together with NIXL's own headers.
#ifndef TELERING_NIXL_HPP
#define TELERING_NIXL_HPP

#include "telering.hpp"

using nixl_xfer_telem_t = telering::producer::TransferTelemetry;
using nixl_status_t = telering::producer::Status;

inline constexpr nixl_status_t NIXL_IN_PROG = nixl_status_t::InProgress;
inline constexpr nixl_status_t NIXL_SUCCESS = nixl_status_t::Success;
inline constexpr nixl_status_t NIXL_ERR_NOT_POSTED = nixl_status_t::NotPosted;
inline constexpr nixl_status_t NIXL_ERR_INVALID_PARAM = nixl_status_t::InvalidParam;
inline constexpr nixl_status_t NIXL_ERR_BACKEND = nixl_status_t::Backend;
inline constexpr nixl_status_t NIXL_ERR_NOT_FOUND = nixl_status_t::NotFound;
inline constexpr nixl_status_t NIXL_ERR_MISMATCH = nixl_status_t::Mismatch;
inline constexpr nixl_status_t NIXL_ERR_NOT_ALLOWED = nixl_status_t::NotAllowed;
inline constexpr nixl_status_t NIXL_ERR_REPOST_ACTIVE = nixl_status_t::RepostActive;
inline constexpr nixl_status_t NIXL_ERR_UNKNOWN = nixl_status_t::Unknown;
inline constexpr nixl_status_t NIXL_ERR_NOT_SUPPORTED = nixl_status_t::NotSupported;
inline constexpr nixl_status_t NIXL_ERR_REMOTE_DISCONNECT = nixl_status_t::RemoteDisconnect;
inline constexpr nixl_status_t NIXL_ERR_CANCELED = nixl_status_t::Canceled;
inline constexpr nixl_status_t NIXL_ERR_NO_TELEMETRY = nixl_status_t::NoTelemetry;

/// The part of NIXL's base class of backends that is about telemetry: derive from it, and add events.
class nixlBackendEngine {
public:
    explicit nixlBackendEngine(telering::producer::Agent& agent) : backend_(agent.backend()) {}
    virtual ~nixlBackendEngine() = default;

    std::vector<telering::producer::BackendEvent> getTelemetryEvents() { return backend_.getTelemetryEvents(); }

protected:
    void addTelemetryEvent(const std::string& eventName, std::uint64_t value) noexcept {
        backend_.addTelemetryEvent(eventName, value);
    }

private:
    telering::producer::Backend backend_;
};

#endif
