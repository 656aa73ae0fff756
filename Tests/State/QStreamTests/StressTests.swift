import Foundation
import Platform
import TestSupport
@testable import QStream
import Testing

/// Eight writers and fifty readers of all kinds that start, end and are cancelled at random, repeatedly.
///
/// `TREBUCHET_LONG_TESTS=1` runs them for ten seconds too.
@Suite(.serialized, .timeLimit(.minutes(5))) struct StressTests {
    private static let isLong = ProcessInfo.processInfo.environment["TREBUCHET_LONG_TESTS"] == "1"
    private let writers = 8
    private let readers = 50

    /// The duration of the readers' activity.
    enum RunLength: Sendable, CustomTestStringConvertible {
        case rounds(Int)
        case time(Duration)

        var testDescription: String {
            switch self {
            case .rounds(let count): "\(count) rounds"
            case .time(let duration): "\(duration)"
            }
        }

        func continues(_ round: Int, since start: ContinuousClock.Instant) -> Bool {
            switch self {
            case .rounds(let count): round < count
            case .time(let duration): ContinuousClock.now - start < duration
            }
        }
    }

    private static var runLengths: [RunLength] { [.rounds(12)] + (isLong ? [.time(.seconds(10))] : []) }

    @Test(
        "values arrive in the order of sending, none is lost or inconsistent, no reader is stuck, nothing is retained",
        arguments: runLengths)
    func stress(runLength: RunLength) async {
        let wires = await StressWires(writers: writers)
        let start = ContinuousClock.now
        let received = await withTaskGroup { writing in
            for writer in 0..<writers {
                writing.addTask {
                    var random = RandomSource(seed: UInt64(1_000 + writer))
                    while !wires.isOver {
                        await wires.write(writer, Bool.random(using: &random) ? wires.left : wires.right)
                        if Int.random(in: 0..<8, using: &random) == 0 { await Task.yield() }
                    }
                }
            }
            let received = await withTaskGroup(of: Int.self) { reading in
                for reader in 0..<readers {
                    reading.addTask {
                        var random = RandomSource(seed: UInt64(reader))
                        var (round, received) = (0, 0)
                        while runLength.continues(round, since: start) {
                            // Each in turn: the rounds of a short run cover all kinds.
                            let kind = StressReader.Kind.allCases[(reader + round) % StressReader.Kind.allCases.count]
                            let log = await StressReader(kind: kind, wires: wires).read(
                                limit: Int.random(in: 1...40, using: &random),
                                patience: Int.random(in: 0...30, using: &random))
                            if let fault = log.fault {
                                Issue.record("\(kind) of reader \(reader) in round \(round): \(fault)")
                                break
                            }
                            round += 1
                            received += log.count
                        }
                        return received
                    }
                }
                return await reading.reduce(0, +)
            }
            wires.end()
            return received
        }
        #expect(received > 0)
        for side in [wires.left, wires.right] {
            let last = await side.value
            #expect(last.written.reduce(0, +) == last.version)
            #expect(await eventually { side.outlet.inletCount == wires.ownInlets }, "all readers were removed")
        }
        #expect(wires.sum.outlet.inletCount == 0)
    }
}
