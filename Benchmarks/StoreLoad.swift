import Commands
import Glibc
import Platform
import Synchronization
import Trebuchet
import TrebuchetStore

/// Measures a `SQLiteStore`, with the disk as the baseline.
struct StoreLoad {
    let folder: String
    let size: Int
    let seconds: Double

    func run() async throws -> BenchReport {
        var report = BenchReport()
        report.add("value_bytes", size)
        let path = "\(folder)/trebuchet-bench-\(getpid())"
        defer { for suffix in ["", ".raw", "-wal", "-shm", "-lock"] { unlink(path + suffix) } }
        report.add("fdatasync_per_second", try await SyncRate.measure(path + ".raw", seconds: seconds))
        for durability in SQLiteStore.Durability.allCases {
            unlink(path)
            var options = SQLiteStore.Options()
            options.durability = durability
            let store = try SQLiteStore(path: path, options: options)
            let name = durability == .powerLoss ? "full" : "normal"
            for writers in [1, 10, 100, 1_000] {
                report.add("\(name)_writes_per_second_\(writers)", try await writeRate(store, writers: writers))
            }
            for (connections, inFlight) in [(1, 1), (64, 16)] {
                let rate = try await callRate(store, connections, inFlight)
                report.add("\(name)_calls_per_second_\(connections)x\(inFlight)", rate)
            }
            await store.close()
        }
        report.add("memory_calls_per_second_1x1", try await callRate(nil, 1, 1))
        report.add("memory_calls_per_second_64x16", try await callRate(nil, 64, 16))
        report.add("fdatasync_per_second_at_the_end", try await SyncRate.measure(path + ".raw", seconds: seconds))
        return report
    }

    /// Each writer waits for its write before the next, as callers do. All together write 10,000 keys.
    private func writeRate(_ store: SQLiteStore, writers: Int) async throws -> Double {
        let start = MonotonicClock.now
        let end = start + UInt64(seconds * 1e9)
        let value = [UInt8](repeating: 0x61, count: size)
        let keys = max(1, 10_000 / writers)
        let count = try await withThrowingTaskGroup(of: Int.self) { group in
            for writer in 0..<writers {
                group.addTask {
                    var count = 0
                    while MonotonicClock.now < end {
                        try await store.put(value, StateKey("bench", "\(writer)/\(count % keys)"))
                        count += 1
                    }
                    return count
                }
            }
            return try await group.reduce(0, +)
        }
        return Double(count) / MonotonicClock.seconds(since: start)
    }

    /// Measures calls over WebSocket to one actor whose state each call changes.
    private func callRate(_ store: SQLiteStore?, _ connections: Int, _ inFlight: Int) async throws -> Double {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 1, store: store)
        await server.expose(Tally(actorSystem: server.actorSystem), as: "tally")
        let url = "ws://\(try await server.start())"
        // In-flight calls need different callIDs.
        let load = RequestLoad(
            messages: (0..<inFlight).map { Array(Invocation.text("tally", "add(_:)", ["1"], id: "c\($0)").utf8) })
        let report = try await load.run(
            url: url, subprotocols: [Invocation.subprotocol], connections: connections, seconds: seconds)
        await server.shutdown(drain: .zero)
        return report["messages_per_second"] ?? 0
    }
}

/// A persisted number.
@Trebuchet
distributed actor Tally {
    @StreamedState(persisted: true) var count: Int = 0

    distributed func add(_ amount: Int) -> Int {
        count &+= amount
        return count
    }
}
