import Foundation
import Platform
import Relays
import Synchronization
import Testing

/// Eight writers and fifty readers that are cancelled at random, repeatedly.
///
/// `TREBUCHET_LONG_TESTS=1` runs them for ten seconds each.
@Suite(.serialized, .timeLimit(.minutes(5))) struct RelayStressTests {
    private static let isLong = ProcessInfo.processInfo.environment["TREBUCHET_LONG_TESTS"] == "1"
    private let writers = 8
    private let readers = 50

    /// The duration of the readers' activity.
    private enum RunLength: Sendable, CustomTestStringConvertible {
        case rounds(Int)
        case time(Duration)

        var testDescription: String {
            switch self {
            case .rounds(let count): "\(count) rounds"
            case .time(let duration): "\(duration)"
            }
        }
    }

    private static func runLengths(rounds: Int) -> [RunLength] {
        [.rounds(rounds)] + (isLong ? [.time(.seconds(10))] : [])
    }

    /// A value with the write counts of all writers at its time.
    private struct Sample {
        var version = 0
        var written: [Int]
    }

    @Test(
        "a state relay gives no value out of order, leaves no reader behind and leaks no slot",
        arguments: runLengths(rounds: 40))
    private func state(runLength: RunLength) async {
        let relay = StateRelay(Sample(written: Array(repeating: 0, count: writers)))
        let reads = await run(runLength) { writer, _ in
            relay.update { sample in
                sample.version += 1
                sample.written[writer] += 1
            }
        } read: { limit in
            var last: Sample?
            var count = 0
            for await sample in relay.stream {
                if let last {
                    guard sample.version > last.version else { return nil }
                    guard zip(last.written, sample.written).allSatisfy({ $0 <= $1 }) else { return nil }
                }
                guard sample.written.reduce(0, +) == sample.version else { return nil }
                last = sample
                count += 1
                if count == limit { break }
            }
            return count
        }
        #expect(relay.waitingReaderCount == 0)
        let final = relay.currentValue
        #expect(final.version == final.written.reduce(0, +))
        #expect(reads > 0)
    }

    private struct Event {
        var writer: Int
        var number: Int
    }

    @Test(
        "an event relay keeps each sender's order, leaves no reader behind and leaks no slot",
        arguments: runLengths(rounds: 12))
    private func events(runLength: RunLength) async {
        let relay = EventRelay<Event>()
        let reads = await run(runLength) { writer, number in
            relay.send(Event(writer: writer, number: number))
        } read: { limit in
            let subscription = relay.subscribe(
                bufferLimit: 16, onOverflow: limit.isMultiple(of: 2) ? .dropOldest : .dropNewest)
            var last: [Int: Int] = [:]
            var count = 0
            do {
                for try await event in subscription {
                    if let before = last[event.writer], event.number <= before { return nil }
                    last[event.writer] = event.number
                    count += 1
                    if count == limit { break }
                }
            } catch {
                return nil
            }
            return count
        }
        #expect(relay.subscriberCount == 0)
        #expect(reads > 0)
    }

    /// Returns the number of values read. `read` gives nil for one that was out of order.
    private func run(
        _ runLength: RunLength, write: @escaping @Sendable (_ writer: Int, _ number: Int) -> Void,
        read: @escaping @Sendable (_ limit: Int) async -> Int?
    ) async -> Int {
        let isOver = Flag()
        let start = ContinuousClock.now
        return await withTaskGroup { writing in
            for writer in 0..<writers {
                writing.addTask {
                    var random = RandomSource(seed: UInt64(1_000 + writer))
                    var number = 0
                    while !isOver.isSet {
                        for _ in 0..<Int.random(in: 1...20, using: &random) {
                            number += 1
                            write(writer, number)
                        }
                        await Task.yield()
                    }
                }
            }
            let count = await withTaskGroup(of: Int.self) { reading in
                for reader in 0..<readers {
                    reading.addTask {
                        var random = RandomSource(seed: UInt64(reader))
                        var round = 0
                        var count = 0
                        while Self.continues(runLength, round, since: start) {
                            round += 1
                            let limit = Int.random(in: 1...200, using: &random)
                            let patience = Int.random(in: 0...8, using: &random)
                            let task = Task { await read(limit) }
                            for _ in 0..<patience { await Task.yield() }
                            task.cancel()
                            guard let reads = await task.value else {
                                Issue.record("reader \(reader) got a value out of order in round \(round)")
                                break
                            }
                            count += reads
                        }
                        return count
                    }
                }
                return await reading.reduce(0, +)
            }
            isOver.set()
            return count
        }
    }

    private static func continues(_ runLength: RunLength, _ round: Int, since start: ContinuousClock.Instant) -> Bool {
        switch runLength {
        case .rounds(let count): round < count
        case .time(let duration): ContinuousClock.now - start < duration
        }
    }
}

private final class Flag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
}
