//! The endpoint of a process over its life: who opens it, who closes it, and what a forked child has of it.

use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use telering::{Mode, Telemetry};

use crate::acceptance::{Heard, order, process};
use crate::{address, scrape, served};

/// Runs one of the programs below in a process of its own; it must end well.
fn run(program: &str) {
    let output = process(program, "program", "").stdin(Stdio::null()).output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program}: {:?}\n{text}\n{errors}", output.status);
    assert!(text.contains("DONE"), "{program} did not run: {text}");
}

/// Not a test of its own.
#[test]
fn program_first_and_last() {
    if order().is_none() {
        return;
    }
    let heard = Heard::default();
    let first = served("first").build();
    let place = address(&first);
    // Another port has no effect, and that is said; the same one, or any, is fine.
    let second = served("second").prometheus_port(1).on_warning(heard.ear()).build();
    let third = served("third").prometheus_port(place.port()).on_warning(heard.ear()).build();
    assert_eq!((address(&second), address(&third)), (place, place));
    assert_eq!(heard.all().len(), 1, "{:?}", heard.all());
    assert!(heard.all()[0].contains(&place.to_string()));
    // The first one goes, the others stay where they are.
    drop(first);
    drop(third);
    assert_eq!(scrape(place).values_of("agent_name").into_iter().collect::<Vec<_>>(), ["second"]);
    drop(second);
    assert!(TcpStream::connect(place).is_err());
    // The next one opens it anew, at its own port.
    let next = served("next").build();
    assert_eq!(scrape(address(&next)).values_of("agent_name").into_iter().collect::<Vec<_>>(), ["next"]);
    let again = next.prometheus_address();
    drop(next);
    // At the same port a hundred times: it is free as soon as the agent is gone.
    for _ in 0..100 {
        let heard = Heard::default();
        let port = again.unwrap().port();
        let agent = served("again").prometheus_port(port).on_warning(heard.ear()).build();
        assert_eq!((agent.mode(), heard.all()), (Mode::Exported, Vec::new()));
    }
    println!("DONE");
}

#[test]
fn the_first_agent_opens_the_endpoint_and_the_last_one_closes_it() {
    run("processes::program_first_and_last");
}

/// Not a test of its own.
#[test]
fn program_fork() {
    if order().is_none() {
        return;
    }
    let parent = served("parent").build();
    parent.memory_registered(3);
    let place = address(&parent);
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the child runs code that takes locks, which a fork of a process with threads forbids in general. That is
    // what this test is about: it must not hang on ours. The allocator's are handled by the C library.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let status = i32::from(!child_is_apart(&parent));
        // Lives on until the parent has closed its endpoint: the address must not be held here.
        let mut byte = [0_u8; 1];
        // SAFETY: the buffer has one byte; afterwards the process ends at once.
        unsafe {
            libc::close(ends[1]);
            libc::read(ends[0], byte.as_mut_ptr().cast(), 1);
            libc::_exit(status);
        }
    }
    assert_eq!(scrape(place).number("agent_memory_registered_total", &[("agent_name", "parent")]), 3);
    drop(parent);
    assert!(
        TcpStream::connect_timeout(&place, Duration::from_secs(5)).is_err(),
        "the child serves the parent's address"
    );
    assert!(TcpListener::bind(place).is_ok(), "the child holds the parent's address");
    let mut status = 0;
    // SAFETY: our own descriptors and our own child; the place for its status is valid.
    unsafe {
        libc::close(ends[1]);
        libc::waitpid(child, &raw mut status, 0);
    }
    assert_eq!(status, 0, "the child");
    println!("DONE");
}

/// In the child: the parent's agent is silent, and one of its own works.
fn child_is_apart(parent: &Telemetry) -> bool {
    let mut text = String::new();
    parent.memory_registered(1);
    let silent =
        parent.render_prometheus(&mut text).is_ok() && text.is_empty() && parent.prometheus_address().is_none();
    let own = served("child").build();
    own.memory_registered(5);
    let page = scrape(address(&own));
    silent
        && page.number("agent_memory_registered_total", &[]) == 5
        && page.values_of("agent_name").into_iter().eq(["child"])
}

#[test]
fn a_forked_child_serves_its_own_agents_and_never_the_parents_address() {
    run("processes::program_fork");
}

/// Sets up the network of a process that has one of its own, then becomes the program: loopback up, and what its first
/// argument says.
const NETWORK: &str = r#"
import fcntl, os, socket, struct, sys
any_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 0x49))
def set_to(name, value):
    with open("/proc/sys/net/ipv6/" + name, "w") as file:
        file.write(value)
if sys.argv[1] == "ipv4 only":
    for interface in ("all", "default", "lo"):
        set_to("conf/" + interface + "/disable_ipv6", "1")
if sys.argv[1] == "ipv6 only":
    fcntl.ioctl(any_socket, 0x8916, struct.pack("16sHHI8x", b"lo", socket.AF_INET, 0, 0))
if sys.argv[1] == "sockets for ipv6 alone":
    set_to("bindv6only", "1")
os.execv(sys.argv[2], sys.argv[2:])
"#;

/// Not a test of its own: an endpoint in the network that its order names.
#[test]
fn program_network() {
    let Some((network, _)) = order() else { return };
    let families = [(network != "ipv6 only", "127.0.0.1"), (network != "ipv4 only", "::1")];
    for local in [false, true] {
        let agent = served("network").prometheus_local(local).build();
        assert_eq!(agent.mode(), Mode::Exported);
        let port = address(&agent).port();
        for (there, address) in families {
            let place = std::net::SocketAddr::new(address.parse().unwrap(), port);
            if there {
                assert_eq!(scrape(place).number("agent_tx_bytes_total", &[]), 0, "{place}");
            } else {
                assert!(TcpStream::connect(place).is_err(), "{network} is not what this is");
            }
        }
    }
    println!("DONE");
}

#[test]
fn the_endpoint_is_reached_in_networks_of_either_kind_and_of_both() {
    const TEST: &str = "the_endpoint_is_reached_in_networks_of_either_kind_and_of_both";
    if !crate::acceptance::is_root(TEST) {
        return;
    }
    for network in ["both", "ipv4 only", "ipv6 only", "sockets for ipv6 alone"] {
        let program = process("processes::program_network", network, "");
        let mut command = std::process::Command::new("unshare");
        command.args(["--net", "python3", "-c", NETWORK, network]).arg(program.get_program()).args(program.get_args());
        command.envs(program.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("DONE"), "{network}: {text}\n{errors}");
    }
}
