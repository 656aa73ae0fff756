import Relays
import Testing
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// The messages of a stream that are accepted, without a connection.
@Suite struct StreamRegistryTests {
    private var registry = StreamRegistry()
    private let stream = EncodedStream(of: StreamTarget(actorID: "a", name: "observeState"), userInfo: [:]) {}

    init() {
        registry.subscribe(
            callNumber: 1, target: StreamTarget(actorID: "a", name: "observeState"), sink: StreamSink(of: stream))
        #expect(registry.handleStreamStart(callNumber: 1, streamID: "s1", epoch: "e") == nil)
    }

    private var value: String? { stream.relay.currentValue.update.map { String(decoding: $0, as: UTF8.self) } }

    private mutating func data(_ sequence: UInt64, _ text: String) {
        Array(text.utf8).withUnsafeBytes { _ = registry.handleStreamData(streamID: "s1", sequence: sequence, data: $0) }
    }

    private mutating func patch(_ sequence: UInt64, base: UInt64, _ text: String) -> StreamRegistry.Resubscription? {
        Array(text.utf8).withUnsafeBytes {
            registry.handleStreamPatch(streamID: "s1", sequence: sequence, base: base, patch: $0, maximumBytes: 1000)
        }
    }

    private static let whole = StreamRegistry.Resubscription(
        callNumber: 1, streamID: "s1", target: StreamTarget(actorID: "a", name: "observeState"))

    @Test("a delta from the current value produces the next one")
    mutating func patched() {
        data(3, "[1,2]")
        #expect(patch(4, base: 3, #"[{"op":"add","path":"/-","value":3}]"#) == nil)
        #expect(value == "[1,2,3]")
        #expect(patch(4, base: 3, #"[{"op":"remove","path":"/0"}]"#) == nil, "late")
        #expect(value == "[1,2,3]")
    }

    @Test(
        "a delta with another base, an invalid one and an oversized result make the client request a snapshot",
        arguments: [
            (2, #"[{"op":"add","path":"/-","value":3}]"#), (3, #"[{"op":"remove","path":"/7"}]"#), (3, "{}"),
            (3, #"[{"op":"add","path":"/-","value":"\#(String(repeating: "x", count: 1000))"}]"#),
        ] as [(UInt64, String)])
    mutating func unusable(_ base: UInt64, _ text: String) {
        data(3, "[1,2]")
        #expect(patch(5, base: base, text) == Self.whole)
        #expect(value == "[1,2]")
        // Messages in transit are ignored; then the server starts the stream again.
        data(6, "[9]")
        #expect(value == "[1,2]")
        #expect(registry.handleStreamStart(callNumber: 1, streamID: "s1", epoch: "e") == nil)
        data(6, "[9]")
        #expect(value == "[9]")
    }

    @Test("on a new connection started streams are resumed at their positions, and the others are started")
    mutating func newEpoch() {
        data(3, "[1,2]")
        registry.subscribe(
            callNumber: 2, target: StreamTarget(actorID: "b", name: "observeOther"),
            sink: StreamSink(of: EncodedStream(of: StreamTarget(actorID: "a", name: "observeState"), userInfo: [:]) {}))
        let beginnings = registry.restartAll()
        #expect(beginnings.map(\.callNumber) == [1, 2])
        #expect(
            beginnings.map(\.startMode) == [
                .resumption(
                    streamID: "s1", StreamTarget(actorID: "a", name: "observeState"), epoch: "e", lastSequence: 3),
                .invocation(StreamTarget(actorID: "b", name: "observeOther")),
            ])
        data(4, "[late]")
        #expect(value == "[1,2]", "the message belongs to the old connection")
        #expect(registry.handleStreamStart(callNumber: 1, streamID: "s1", epoch: "e") == nil)
        data(3, "[1,2]")
        #expect(stream.relay.currentValue.count == 1, "the stream has this version already")
        data(4, "[3]")
        #expect(value == "[3]")
        registry.handleStreamEnd(streamID: "s1", reason: .serverDraining)
        #expect(stream.relay.currentValue.outcome == nil, "the stream continues elsewhere")
    }
}
