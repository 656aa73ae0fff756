import Networking
import Platform
import WebSockets

/// Measures the server's memory per idle connection.
enum IdleLoad {
    static func run(
        url: String, process: ServerProcess, connections: Int, observing: Bool
    ) async throws -> BenchReport {
        let group = try ReactorGroup.clients()
        // Warm up, since the first connections have one-time costs.
        var sockets = try await open(100, url, group, observing)
        try await Task.sleep(for: .seconds(0.5))
        let before = try process.residentBytes()
        let start = MonotonicClock.now
        sockets += try await open(connections, url, group, observing)
        let duration = MonotonicClock.seconds(since: start)
        try await Task.sleep(for: .seconds(1))
        let after = try process.residentBytes()
        var report = BenchReport()
        report.add("connections", connections)
        report.add("observing", observing ? 1 : 0)
        report.add("open_seconds", duration)
        report.add("server_bytes_before", before)
        report.add("server_bytes_after", after)
        report.add("server_bytes_per_connection", Double(after - before) / Double(connections))
        for socket in sockets { socket.abort() }
        return report
    }

    private static func open(
        _ count: Int, _ url: String, _ group: ReactorGroup, _ observing: Bool
    ) async throws -> [WebSocket] {
        try await withThrowingTaskGroup(of: [WebSocket].self) { tasks in
            let lanes = 64
            for lane in 0..<lanes {
                tasks.addTask {
                    var sockets: [WebSocket] = []
                    for _ in stride(from: lane, to: count, by: lanes) {
                        let socket = try await WebSocketClient.connect(
                            to: url, subprotocols: [Invocation.subprotocol], reactors: group
                        ) { _ in Silent() }
                        if observing { socket.send(text: Invocation.text("counter", "observeState")) }
                        sockets.append(socket)
                    }
                    return sockets
                }
            }
            return try await tasks.reduce(into: []) { $0 += $1 }
        }
    }

    /// A handler that ignores messages.
    private final class Silent: WebSocketHandler {
        func webSocket(
            _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
        ) {}
    }
}
