import Commands
import Glibc
import Platform
import Synchronization
import WebSockets

/// Runs connections that end in every possible way, and measures the resources that the server retains afterwards: none, if it
/// is correct.
struct SoakLoad {
    let connections: Int
    let threads: Int
    var endings = SoakEnding.allCases

    /// - Parameter process: the process of the server at `url`, on this machine.
    func run(url: String, process: ServerProcess) async throws -> BenchReport {
        let remote = try WebSocketURL(url)
        guard !remote.isSecure else { throw UsageError("soak supports only ws://") }
        // Warm up, since the first connections have one-time costs.
        try await endAll(min(connections, 2_000), remote)
        let before = try await settled(process)
        let start = ContinuousClock.now
        try await endAll(connections, remote)
        let duration = (ContinuousClock.now - start) / .seconds(1)
        let after = try await settled(process)
        var report = BenchReport()
        report.add("connections", connections)
        report.add("ways_to_end", endings.count)
        report.add("seconds", duration)
        report.add("descriptors_before", before.descriptors)
        report.add("descriptors_after", after.descriptors)
        report.add("threads_before", before.threads)
        report.add("threads_after", after.threads)
        report.add("server_bytes_before", before.bytes)
        report.add("server_bytes_after", after.bytes)
        report.add("bytes_left_per_connection", Double(after.bytes - before.bytes) / Double(connections))
        return report
    }

    /// Each thread runs all endings in turn.
    private func endAll(_ count: Int, _ remote: WebSocketURL) async throws {
        let numbers = Numbers()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<threads {
                group.addTask {
                    try await onThread {
                        while case let number = numbers.next(), number < count {
                            let ending = endings[number % endings.count]
                            try ending.run(host: remote.host, port: remote.port)
                            if number % 1_000 == 999 { Progress.printLine("\(number + 1) of \(count)") }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Assigns consecutive numbers to connections.
    private final class Numbers: Sendable {
        private let last = Atomic(0)
        func next() -> Int { last.wrappingAdd(1, ordering: .relaxed).oldValue }
    }

    /// The resources of a process.
    private struct Footprint {
        var descriptors: Int
        var threads: Int
        var bytes: Int
    }

    /// Returns the resources of the server once it is idle: its number of descriptors is stable for a second.
    private func settled(_ process: ServerProcess) async throws -> Footprint {
        var last = -1
        for _ in 0..<30 {
            try await Task.sleep(for: .seconds(1))
            let count = try process.descriptors()
            if count == last { break }
            last = count
        }
        return Footprint(
            descriptors: last, threads: try process.threads(), bytes: try process.residentBytes())
    }
}
