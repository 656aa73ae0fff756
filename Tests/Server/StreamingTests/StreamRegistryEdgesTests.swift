import Relays
import Testing
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Special cases of a client's streams.
@Suite struct StreamRegistryEdgesTests {
    private var registry = StreamRegistry()

    private func sink(_ stream: EncodedStream) -> StreamSink { StreamSink(of: stream) }

    private func stream(_ reading: StreamReading = .latest, filter: StreamFilter? = nil) -> EncodedStream {
        EncodedStream(
            of: StreamTarget(actorID: "a", name: "observeState", filter: filter), reading: reading, userInfo: [:]
        ) {}
    }

    private func value(_ stream: EncodedStream) -> String? {
        stream.relay.currentValue.update.map { String(decoding: $0, as: UTF8.self) }
    }

    @discardableResult
    private mutating func data(_ id: String, _ sequence: UInt64, _ text: String) -> Bool {
        Array(text.utf8).withUnsafeBytes { registry.handleStreamData(streamID: id, sequence: sequence, data: $0) }
    }

    private mutating func begin(_ number: UInt64, _ stream: EncodedStream, id: String? = nil, epoch: String = "e") {
        registry.subscribe(
            callNumber: number, target: StreamTarget(actorID: "a", name: "observeState"), sink: sink(stream))
        if let id { _ = registry.handleStreamStart(callNumber: number, streamID: id, epoch: epoch) }
    }

    @Test("streams are counted, and so are those that have not started")
    mutating func counts() {
        let streams = [stream(), stream()]
        #expect(registry.count == 0 && registry.startingCount == 0)
        begin(1, streams[0])
        begin(2, streams[1], id: "s2")
        #expect(registry.count == 2 && registry.startingCount == 1)
        let unknown = registry.handleStreamStart(callNumber: 9, streamID: "s9", epoch: "e")
        #expect(unknown == "s9")
        #expect(registry.count == 2 && registry.startingCount == 1)
        let notBegun = registry.remove(callNumber: 1)
        let begun = registry.remove(callNumber: 2)
        let gone = registry.remove(callNumber: 2)
        #expect(notBegun == .cancel(callNumber: 1) && begun == .end(streamID: "s2") && gone == nil)
        #expect(registry.count == 0 && registry.startingCount == 0)
    }

    @Test("a stream that its server starts repeatedly with new IDs is counted once")
    mutating func startedAgain() {
        let (first, second) = (stream(), stream())
        begin(1, first)
        begin(2, second)
        for id in ["s1", "s2", "s3"] { _ = registry.handleStreamStart(callNumber: 1, streamID: id, epoch: "e") }
        #expect(registry.startingCount == 1)
        let old = data("s1", 1, "1")
        let new = data("s3", 1, "1")
        #expect(!old && new)
        // The ID of another stream that has started.
        _ = registry.handleStreamStart(callNumber: 2, streamID: "s3", epoch: "e")
        #expect(registry.startingCount == 1)
        let removed = registry.remove(callNumber: 1)
        #expect(removed == .cancel(callNumber: 1) && registry.startingCount == 0)
        let secondID = registry.remove(callNumber: 2)
        #expect(secondID == .end(streamID: "s3") && registry.count == 0 && registry.startingCount == 0)
    }

    @Test("the ID of a stream on an earlier connection may belong to another stream on this one")
    mutating func reusedNames() {
        let (first, second) = (stream(), stream())
        begin(1, first, id: "s1")
        begin(2, second, id: "s2")
        _ = registry.restartAll()
        _ = registry.handleStreamStart(callNumber: 2, streamID: "s1", epoch: "e")
        let removed = registry.remove(callNumber: 1)
        let isTaken = data("s1", 1, "1")
        #expect(removed == .cancel(callNumber: 1) && isTaken && value(second) == "1")
    }

    @Test("values count when they are newer and of the same epoch; another epoch resets the sequence")
    mutating func sequences() {
        let stream = stream()
        begin(1, stream, id: "s")
        for (sequence, text, isTaken) in [(3, "1", true), (3, "2", false), (2, "3", false), (4, "4", true)]
            as [(UInt64, String, Bool)]
        {
            let wasTaken = data("s", sequence, text)
            #expect(wasTaken == isTaken)
        }
        #expect(value(stream) == "4")
        _ = registry.handleStreamStart(callNumber: 1, streamID: "s", epoch: "e")
        let late = data("s", 4, "5")
        #expect(!late)
        _ = registry.handleStreamStart(callNumber: 1, streamID: "s", epoch: "f")
        let fresh = data("s", 1, "6")
        #expect(fresh && value(stream) == "6")
        let unknown = data("t", 9, "7")
        #expect(!unknown)
    }

    @Test("events are accepted in sequence after the position; a missing one ends the stream")
    mutating func events() {
        let stream = stream(.events(buffer: 10))
        registry.subscribe(
            callNumber: 1, target: StreamTarget(actorID: "a", name: "observeEvents"), sink: sink(stream))
        _ = registry.handleStreamStart(callNumber: 1, streamID: "s", epoch: "e", position: 5)
        let early = data("s", 5, "1")
        let first = data("s", 6, "2")
        #expect(!early && first)
        let gap = data("s", 9, "3")
        #expect(!gap)
        #expect(
            stream.relay.currentValue.outcome
                == .failed(TrebuchetError(.overflow, "events 7 to 8 were not received")))
        #expect(registry.count == 0)
    }

    @Test("events of another incarnation that do not follow the seen ones end the stream")
    mutating func otherIncarnation() {
        let stream = stream(.events(buffer: 10))
        registry.subscribe(
            callNumber: 1, target: StreamTarget(actorID: "a", name: "observeEvents"), sink: sink(stream))
        _ = registry.handleStreamStart(callNumber: 1, streamID: "s", epoch: "e", position: 5)
        let first = data("s", 6, "1")
        _ = registry.restartAll()
        _ = registry.handleStreamStart(callNumber: 1, streamID: "t", epoch: "f", position: 6)
        let next = data("t", 7, "2")
        #expect(first && next)
        _ = registry.restartAll()
        let unwanted = registry.handleStreamStart(callNumber: 1, streamID: "u", epoch: "g", position: 2)
        #expect(unwanted == "u" && registry.count == 0)
        #expect(
            stream.relay.currentValue.outcome
                == .failed(
                    TrebuchetError(.overflow, "events were missed: their actor was activated again")))
    }

    @Test("events may start after a bookmark, and continue from there over each connection")
    mutating func since() {
        let stream = stream(.events(buffer: 10, since: EventBookmark(epoch: "e", sequence: 5)))
        let target = StreamTarget(actorID: "a", name: "observeEvents")
        let asked = registry.subscribe(
            callNumber: 1, target: target, sink: sink(stream), since: EventBookmark(epoch: "e", sequence: 5))
        let startMode = StreamRegistry.StartMode.resumption(streamID: "new", target, epoch: "e", lastSequence: 5)
        #expect(asked == startMode)
        #expect(registry.restartAll().map(\.startMode) == [startMode])
        _ = registry.handleStreamStart(callNumber: 1, streamID: "s", epoch: "e", position: 9)
        #expect(stream.position?.bookmark == EventBookmark(epoch: "e", sequence: 5))
        let wasTaken = (5...7).map { data("s", $0, "\($0)") }
        #expect(wasTaken == [false, true, true])
        let again = registry.restartAll().map(\.startMode)
        #expect(again == [.resumption(streamID: "s", target, epoch: "e", lastSequence: 7)])
    }

    @Test("a value equal to the previous one is omitted if the filter requests this", arguments: [true, false])
    mutating func equal(skipsEqual: Bool) throws {
        let filter = skipsEqual ? StreamFilter.distinct() : .atMost(every: .milliseconds(1))
        let stream = stream(filter: filter)
        var target = StreamTarget(actorID: "a", name: "observeState")
        target.filter = filter
        registry.subscribe(callNumber: 1, target: target, sink: sink(stream))
        _ = registry.handleStreamStart(callNumber: 1, streamID: "s", epoch: "e")
        data("s", 1, "1")
        let again = data("s", 2, "1")
        #expect(again == !skipsEqual)
        let other = data("s", 3, "2")
        #expect(other && value(stream) == "2")
    }

    @Test(
        "the end of a stream has a reason, and the stream is removed unless it continues elsewhere",
        arguments: [
            (StreamEndReason.completed, StreamOutcome.completed), (.clientUnsubscribed, .completed),
            (.actorTerminated, .failed(TrebuchetError(.actorNotFound, "the actor no longer exists"))),
            (.serverDraining, nil),
            (.connectionClosed, nil),
            (StreamEndReason(rawValue: "new"), .failed(TrebuchetError(.unavailable, "the stream ended: new"))),
        ] as [(StreamEndReason, StreamOutcome?)])
    mutating func ends(reason: StreamEndReason, outcome: StreamOutcome?) {
        let stream = stream()
        begin(1, stream, id: "s")
        data("s", 1, "1")
        registry.handleStreamEnd(streamID: "other", reason: reason)
        #expect(stream.relay.currentValue.outcome == nil)
        registry.handleStreamEnd(streamID: "s", reason: reason)
        #expect(stream.relay.currentValue.outcome == outcome)
        #expect(registry.count == (outcome == nil ? 1 : 0))
        #expect(registry.startingCount == registry.count)
        let late = data("s", 2, "2")
        #expect(!late && value(stream) == "1")
    }

    @Test("an error ends the stream with its current ID, and a refusal ends a stream that has not started")
    mutating func errors() {
        let (first, second, third) = (stream(), stream(), stream())
        begin(1, first, id: "s1")
        begin(2, second, id: "s2")
        begin(3, third)
        _ = registry.restartAll()
        // The ID may belong to another stream by now.
        registry.handleStreamError(streamID: "s1", error: TrebuchetError(.internal, "no"))
        #expect(first.relay.currentValue.outcome == nil)
        _ = registry.handleStreamStart(callNumber: 1, streamID: "s7", epoch: "e")
        registry.handleStreamError(streamID: "s7", error: TrebuchetError(.internal, "no"))
        registry.handleStreamError(streamID: "none", error: TrebuchetError(.internal, "no"))
        registry.fail(callNumber: 3, error: TrebuchetError(.unauthorized, "no"))
        #expect(first.relay.currentValue.outcome == .failed(TrebuchetError(.internal, "no")))
        #expect(third.relay.currentValue.outcome == .failed(TrebuchetError(.unauthorized, "no")))
        #expect(second.relay.currentValue.outcome == nil && registry.count == 1)
        registry.removeAll(TrebuchetError(.unavailable, "gone"))
        #expect(second.relay.currentValue.outcome == .failed(TrebuchetError(.unavailable, "gone")))
        #expect(registry.count == 0 && registry.restartAll().isEmpty)
    }
}
