import Glibc
import Networking
import WebSockets

/// Connections that say nothing, and what each costs the server in memory.
enum IdleLoad {
    static func run(url: String, pid: Int32, connections: Int, observing: Bool) async throws -> BenchReport {
        let group = try ReactorGroup.clients()
        // Warm: what the first connections cost once is not what each costs.
        var sockets = try await open(100, url, group, observing)
        try await Task.sleep(for: .seconds(0.5))
        let before = try residentBytes(pid)
        let start = MonotonicClock.now
        sockets += try await open(connections, url, group, observing)
        let took = Double(MonotonicClock.now - start) / 1e9
        try await Task.sleep(for: .seconds(1))
        let after = try residentBytes(pid)
        var report = BenchReport()
        report.add("connections", connections)
        report.add("observing", observing ? 1 : 0)
        report.add("open_seconds", took)
        report.add("server_bytes_before", before)
        report.add("server_bytes_after", after)
        report.add("server_bytes_per_connection", Double(after - before) / Double(connections))
        for socket in sockets { socket.abort() }
        return report
    }

    private static func open(
        _ count: Int, _ url: String, _ group: ReactorGroup, _ observing: Bool
    ) async throws -> [WebSocket] {
        let subscribe =
            #"{"type":"invocation","payload":{"callID":"o","actorID":"counter","targetIdentifier":"observeState"}}"#
        return try await withThrowingTaskGroup(of: [WebSocket].self) { tasks in
            let lanes = 64
            for lane in 0..<lanes {
                tasks.addTask {
                    var sockets: [WebSocket] = []
                    for _ in stride(from: lane, to: count, by: lanes) {
                        let socket = try await WebSocketClient.connect(
                            to: url, subprotocols: ["trebuchet.v3"], reactors: group
                        ) { _ in Silent() }
                        if observing { socket.send(text: subscribe) }
                        sockets.append(socket)
                    }
                    return sockets
                }
            }
            return try await tasks.reduce(into: []) { $0 += $1 }
        }
    }

    private final class Silent: WebSocketHandler {
        func webSocket(
            _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
        ) {}
    }

    /// Memory of a process that is in RAM, from `/proc/PID/smaps_rollup`.
    private static func residentBytes(_ pid: Int32) throws -> Int {
        guard let file = fopen("/proc/\(pid)/smaps_rollup", "r") else {
            throw UsageError("cannot read the memory of process \(pid): \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, 256, file) != nil {
            let words = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                .split(separator: " ")
            if words.first == "Rss:", words.count > 1, let kilobytes = Int(words[1]) { return kilobytes << 10 }
        }
        throw UsageError("process \(pid) has no Rss in smaps_rollup")
    }
}
