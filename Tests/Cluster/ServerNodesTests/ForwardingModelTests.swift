import Foundation
import TestSupport
import Testing

@testable import Trebuchet
@testable import TrebuchetNodes

/// All orders of events of a client's forwarded streams, and the table of the machine.
@Suite struct ForwardingModelTests {
    @Test(
        "in every order of events a client gets each version once, in order, and responses after their versions",
        arguments: ForwardingModel.Move.allCases)
    func allOrders(move: ForwardingModel.Move) {
        let isLong = ProcessInfo.processInfo.environment["TREBUCHET_LONG_TESTS"] == "1"
        let models = [
            ForwardingModel(move, calls: isLong ? 2 : 1, fails: isLong, cancels: isLong),
            ForwardingModel(move, calls: 0, fails: true, cancels: true),
        ]
        for model in models {
            let result = ForwardingModel.explore(model, upTo: 1_000_000)
            #expect(result.violation == nil)
            #expect(result.ends > 0 && result.states > 400 && result.states < 1_000_000)
        }
    }

    @Test("the check finds a machine that is wrong in one place", arguments: ForwardingModel.Mutant.allCases)
    func mutants(mutant: ForwardingModel.Mutant) {
        let isFound = ForwardingModel.Move.allCases.contains { move in
            let model = ForwardingModel(
                move, calls: 1, fails: false, cancels: mutant == .keepsCancelledStart, mutant: mutant)
            return ForwardingModel.explore(model, upTo: 1_000_000).violation != nil
        }
        #expect(isFound)
    }

    @Test("the table of phases and inputs on the page is that of the machine")
    func table() throws {
        let start = ForwardedStream.Start(streamID: [1], epoch: "e", position: nil)
        let inputs: [(String, ForwardedStream.Input)] = [
            ("ownerFound", .ownerFound(over: 1)), ("ownerIsHere", .ownerIsHere), ("ownerChanged", .ownerChanged(to: 2)),
            ("started", .started(start, over: 1)), ("permitted", .permitted(over: 1)), ("refused", .refused(over: 1)),
            ("failed", .failed(isTemporary: false, over: 1)),
            ("failed, temporary", .failed(isTemporary: true, over: 1)),
            ("updated", .updated(sequence: 1, over: 1)), ("caughtUp", .caughtUp(over: 1)), ("moved", .moved(over: 1)),
            ("finished", .finished(over: 1)), ("channelLost", .channelLost(1)), ("pauseEnded", .pauseEnded),
            ("catchUpTimedOut", .catchUpTimedOut), ("cancelled", .cancelled), ("resumedHere", .resumedHere),
        ]
        let phases: [ForwardedStream.Phase] = [
            .requested, .queued, .paused, .resuming(over: 1), .resumingHere, .catchingUp(over: 1), .live(over: 1),
            .ended,
        ]
        func name(_ value: some Any) -> String {
            "\(value)".prefix { $0 != "(" }.split(separator: ".").last.map(String.init) ?? ""
        }
        var rows: [(input: String, phases: String, rest: String)] = []
        for (label, input) in inputs {
            for phase in phases {
                let (next, action) = ForwardedStream.step(phase, input)
                guard next != phase || action != .none else { continue }
                let rest = "\(name(action)) | \(next == phase ? "same" : name(next))"
                if let index = rows.firstIndex(where: { $0.input == label && $0.rest == rest }) {
                    rows[index].phases += ", \(name(phase))"
                } else {
                    rows.append((label, name(phase), rest))
                }
            }
        }
        let lines = rows.map { "| \($0.input) | \($0.phases) | \($0.rest) |" }
        let page = try String(
            contentsOf: packageRoot.appending(path: "Docs/Internals/ForwardedStreams.md"), encoding: .utf8)
        let found = page.split(separator: "\n").filter { $0.hasPrefix("| ") }.map(String.init)
        #expect(Array(found.suffix(lines.count)) == lines)
    }

    @Test("only the start of an unwanted stream has an effect over a channel that is not the stream's")
    func otherChannels() {
        let phases: [ForwardedStream.Phase] = [.resuming(over: 1), .catchingUp(over: 1), .live(over: 1)]
        let inputs: [ForwardedStream.Input] = [
            .permitted(over: 2), .refused(over: 2), .failed(isTemporary: true, over: 2), .updated(sequence: 1, over: 2),
            .caughtUp(over: 2), .moved(over: 2), .finished(over: 2), .channelLost(2), .ownerChanged(to: 1),
        ]
        let start = ForwardedStream.Start(streamID: [1], epoch: "e", position: nil)
        for phase in phases {
            for input in inputs { #expect(ForwardedStream.step(phase, input) == (phase, .none)) }
            #expect(ForwardedStream.step(phase, .started(start, over: 2)) == (phase, .unsubscribe(over: 2)))
        }
    }
}
