import Glibc
import TestSupport
import ToolOptions
import Trebuchet

/// A machine of a seed: a network namespace, with one line to a bridge that the judge is at, too.
struct Host: Hashable {
    let name: String
    let address: String

    /// The arguments that start a program in the namespace.
    var namespaceArguments: [String] { ["--net=/run/netns/\(name)"] }
}

/// The machines of a seed. Packets between two of them can be dropped at the receiver, also in one direction only, and a link can be slow.
///
/// The judge runs in separate namespaces (set up by `scripts/stress consistency`), so that the system removes everything when it is killed.
final class Namespaces {
    /// Where the judge is.
    static let judge = "10.77.0.1"

    private let hosts: [Host]
    private var slowHosts: Set<Host> = []

    init(_ hosts: [Host]) async throws {
        guard getpid() == 1 else { throw WrongUse("--namespaces needs scripts/stress consistency, which makes them") }
        self.hosts = hosts
        var lines = [
            "test -e /run/of-this-judge || { mount -t tmpfs tmpfs /run; mkdir /run/netns; touch /run/of-this-judge; }",
            "ip link set lo up",
            "ip link add trebuchet type bridge", "ip address add \(Self.judge)/24 dev trebuchet",
            "ip link set trebuchet up",
        ]
        for host in hosts {
            let name = host.name
            lines += [
                // That of the previous seed exists until the kernel has ended its namespace.
                "ip link delete \(name) 2>/dev/null || true",
                "ip netns add \(name)", "ip link add \(name) type veth peer name eth0 netns \(name)",
                "ip link set \(name) master trebuchet up", "ip -n \(name) address add \(host.address)/24 dev eth0",
                "ip -n \(name) link set lo up", "ip -n \(name) link set eth0 up",
                // Otherwise the system buffers several MiB before a server detects a stalled reader.
                "nsenter --net=/run/netns/\(name) sysctl -qw net.ipv4.tcp_rmem='4096 32768 131072' net.ipv4.tcp_wmem='4096 32768 131072'",
                """
                nsenter --net=/run/netns/\(name) nft 'add table ip faults; add set ip faults cut { type ipv4_addr; };
                add chain ip faults arriving { type filter hook input priority 0; }; add rule ip faults arriving ip saddr @cut drop'
                """,
            ]
        }
        try await Shell.run(lines.joined(separator: "\n"))
    }

    func remove() async throws {
        try await Shell.run("ip link del trebuchet\n" + hosts.map { "ip netns del \($0.name)" }.joined(separator: "\n"))
    }

    /// Drops the packets from `senders` to `receivers` from now on, and with `.both` also those in the other direction.
    func cut(_ senders: [Host], _ way: Way, _ receivers: [Host]) async throws {
        var lines: [String] = []
        if way != .from { lines += receivers.map { Self.drop(senders, at: $0) } }
        if way != .to { lines += senders.map { Self.drop(receivers, at: $0) } }
        try await Shell.run(lines.joined(separator: "\n"))
    }

    private static func drop(_ senders: [Host], at receiver: Host) -> String {
        let addresses = senders.map(\.address).joined(separator: ", ")
        return "nsenter --net=/run/netns/\(receiver.name) nft 'add element ip faults cut { \(addresses) }'"
    }

    /// Limits the incoming traffic of a host to 32 KB/s and drops the excess.
    func slow(_ host: Host) async throws {
        slowHosts.insert(host)
        try await Shell.run("tc qdisc add dev \(host.name) root tbf rate 256kbit burst 8kb latency 100ms")
    }

    /// All arrives again, at once.
    func heal() async throws {
        let lines =
            hosts.map { "nsenter --net=/run/netns/\($0.name) nft 'flush set ip faults cut'" }
            + slowHosts.map { "tc qdisc del dev \($0.name) root" }
        slowHosts = []
        try await Shell.run(lines.joined(separator: "\n"))
    }

    /// Which way nothing arrives.
    enum Way: String, CaseIterable { case both, to, from }
}

enum Shell {
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// Returns the output.
    @discardableResult
    static func run(_ script: String) async throws -> [String] {
        let program = try ChildProgram("/bin/sh", ["-e", "-c", script])
        guard await eventually(within: .seconds(60), { !program.isRunning }), program.end == "ended with 0" else {
            program.kill()
            throw Failed(description: "\(script.prefix(300)) \(program.end ?? "hangs"): \(program.lines.suffix(5))")
        }
        return program.lines
    }
}
