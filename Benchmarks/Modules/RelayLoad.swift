import Platform
import Relays
import Synchronization

/// Measures one state with many waiting readers: a `StateRelay` against one `AsyncStream` continuation per reader.
struct RelayLoad {
    /// The time for the writer, and until the last reader has the value; medians in nanoseconds.
    private struct Cost {
        var update: UInt64
        var delivery: UInt64
    }

    let readers: Int
    let rounds: Int

    func run() async -> BenchReport {
        // Alternate, so that other load affects both.
        var relay: [Cost] = []
        var streams: [Cost] = []
        for _ in 0..<5 {
            relay.append(await relayCost())
            streams.append(await streamsCost())
        }
        let (ours, theirs) = (Self.median(relay), Self.median(streams))
        var report = BenchReport()
        report.add("readers", readers)
        report.add("relay_update_ns", Int(ours.update))
        report.add("streams_update_ns", Int(theirs.update))
        report.add("update_percent_of_streams", 100 * Double(ours.update) / Double(theirs.update))
        report.add("relay_delivery_ns", Int(ours.delivery))
        report.add("streams_delivery_ns", Int(theirs.delivery))
        report.add("delivery_percent_of_streams", 100 * Double(ours.delivery) / Double(theirs.delivery))
        report.add("current_value_ns", Self.currentValueCost())
        return report
    }

    private func relayCost() async -> Cost {
        let relay = StateRelay(0)
        let received = ReadCount()
        return await withTaskGroup { group in
            for _ in 0..<readers {
                group.addTask { for await _ in relay.stream { received.add() } }
            }
            let cost = await measure(
                received, areWaiting: { relay.waitingReaderCount == readers }, update: { relay.update($0) })
            relay.finish()
            return cost
        }
    }

    /// The common implementation of a state: one continuation per reader, which buffers the newest value.
    private func streamsCost() async -> Cost {
        let received = ReadCount()
        return await withTaskGroup { group in
            var continuations: [Int: AsyncStream<Int>.Continuation] = [:]
            for reader in 0..<readers {
                let (stream, continuation) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingNewest(1))
                continuation.yield(0)
                continuations[reader] = continuation
                group.addTask { for await _ in stream { received.add() } }
            }
            let cost = await measure(
                received, areWaiting: { true },
                update: { value in
                    for continuation in continuations.values { continuation.yield(value) }
                })
            for continuation in continuations.values { continuation.finish() }
            return cost
        }
    }

    private func measure(_ received: ReadCount, areWaiting: () -> Bool, update: (Int) -> Void) async -> Cost {
        await waitForAll(received, 1)
        var updates: [UInt64] = []
        var deliveries: [UInt64] = []
        for round in 1...rounds {
            let start = MonotonicClock.now
            update(round)
            updates.append(MonotonicClock.now - start)
            await waitForAll(received, round + 1)
            deliveries.append(MonotonicClock.now - start)
            // The last readers must resume waiting; a stream does not report when they do.
            for _ in 0..<200 { await Task.yield() }
            while !areWaiting() { await Task.yield() }
        }
        return Cost(update: updates.median, delivery: deliveries.median)
    }

    /// Waits until every reader has the value, so that each reader receives every value.
    private func waitForAll(_ received: ReadCount, _ values: Int) async {
        while received.count < values * readers { await Task.yield() }
    }

    private static func median(_ costs: [Cost]) -> Cost {
        Cost(update: costs.map(\.update).median, delivery: costs.map(\.delivery).median)
    }

    /// Returns the nanoseconds for reading a relay's current value, the best of several runs.
    private static func currentValueCost() -> Double {
        let relay = StateRelay(1)
        let reads = 100_000
        var best = UInt64.max
        for _ in 0..<10 {
            var sum = 0
            let start = MonotonicClock.now
            for _ in 0..<reads { sum &+= relay.currentValue }
            best = min(best, MonotonicClock.now - start)
            precondition(sum == reads)
        }
        return Double(best) / Double(reads)
    }
}

/// Counts the values that all readers received.
private final class ReadCount: Sendable {
    private let total = Atomic<Int>(0)

    var count: Int { total.load(ordering: .acquiring) }

    func add() { total.add(1, ordering: .releasing) }
}
