import Relays
import Testing
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// The client's copy of a state that applies changes incrementally, without a connection.
@Suite struct IncrementalStateTests {
    struct Item: Codable, Sendable, Identifiable, Equatable {
        let id: Int
        var title = ""
    }

    private typealias Items = KeyedCollection<Item>

    private static let target = StreamTarget(actorID: "a", name: "observeItems")

    private let appliedState = AppliedState<Items>()
    private let stream: EncodedStream
    private var registry = StreamRegistry()
    private var relay: StateRelay<EncodedStream.State> { stream.relay }

    init() {
        stream = EncodedStream(of: Self.target, incrementalState: appliedState, userInfo: [:]) {}
        registry.subscribe(callNumber: 1, target: Self.target, sink: StreamSink(of: stream))
        #expect(registry.handleStreamStart(callNumber: 1, streamID: "s1", epoch: "e") == nil)
    }

    private var newest: (value: Items, count: UInt64)? {
        get throws { try appliedState.newest(userInfo: [:]) }
    }

    private mutating func data(_ sequence: UInt64, _ text: String) {
        Array(text.utf8).withUnsafeBytes { _ = registry.handleStreamData(streamID: "s1", sequence: sequence, data: $0) }
    }

    @discardableResult
    private mutating func patch(_ sequence: UInt64, _ text: String, base: UInt64? = nil) -> StreamRegistry
        .Resubscription?
    {
        Array(text.utf8).withUnsafeBytes {
            registry.handleStreamPatch(
                streamID: "s1", sequence: sequence, base: base ?? sequence - 1, patch: $0, maximumBytes: 1000)
        }
    }

    private static let whole = StreamRegistry.Resubscription(callNumber: 1, streamID: "s1", target: target)

    private static func add(_ id: Int) -> String { #"[{"op":"add","path":"/-","value":{"id":\#(id),"title":""}}]"# }

    @Test("pending changes are applied in order and once, when a reader requests the value")
    mutating func applied() throws {
        #expect(try newest == nil)
        data(3, #"[{"id":1,"title":"a"}]"#)
        #expect(patch(4, Self.add(2)) == nil)
        #expect(patch(5, #"[{"op":"replace","path":"/0","value":{"id":1,"title":"b"}}]"#) == nil)
        #expect(relay.currentValue.count == 3)
        #expect(relay.currentValue.update == nil)
        for _ in 0..<2 {
            let found = try #require(try newest)
            #expect(found.value == [Item(id: 1, title: "b"), Item(id: 2)])
            #expect(found.count == 3)
        }
        #expect(patch(6, Self.add(3)) == nil)
        #expect(try newest?.value.map(\.id) == [1, 2, 3])
        data(9, "[]")
        #expect(try newest?.value == [])
        #expect(try newest?.count == 5)
    }

    @Test("changes from another base value, or before the first value, make the client request a snapshot")
    mutating func otherBase() throws {
        #expect(patch(4, Self.add(1), base: 0) == Self.whole)
        #expect(registry.handleStreamStart(callNumber: 1, streamID: "s1", epoch: "e") == nil)
        data(4, "[]")
        #expect(patch(6, Self.add(1), base: 5) == Self.whole)
        #expect(patch(7, Self.add(1)) == nil, "the change is ignored")
        #expect(try newest?.value == [])
        #expect(registry.handleStreamStart(callNumber: 1, streamID: "s1", epoch: "e") == nil)
        data(7, #"[{"id":1,"title":"a"}]"#)
        #expect(try newest?.value == [Item(id: 1, title: "a")])
    }

    @Test("a limited number of changes may be pending; then the client requests a snapshot")
    mutating func bounded() throws {
        data(1, "[]")
        var asked: UInt64?
        for sequence in 2...UInt64(5_000) where asked == nil {
            if patch(sequence, Self.add(Int(sequence))) == Self.whole { asked = sequence }
        }
        #expect(asked.map { (500...1_100).contains($0) } == true)
        #expect(try newest?.value.count == asked.map { Int($0) - 2 })
        // A reader that reads in time never exceeds the limit.
        #expect(registry.handleStreamStart(callNumber: 1, streamID: "s1", epoch: "e") == nil)
        data(10_000, "[]")
        for sequence in 10_001...UInt64(13_000) {
            #expect(patch(sequence, Self.add(Int(sequence))) == nil)
            if sequence % 100 == 0 { #expect(try newest?.value.count == Int(sequence) - 10_000) }
        }
    }

    @Test("when changes do not fit the value, the stream restarts and is assembled as text from then on")
    mutating func typeMismatch() throws {
        data(3, #"[{"id":1,"title":"a"}]"#)
        #expect(patch(4, #"[{"op":"replace","path":"/0/title","value":"b"}]"#) == nil)
        #expect(throws: ChangesMismatch.self) { try newest }
        let asked = registry.stopKeeping(1)
        #expect(asked == Self.whole)
        #expect(registry.stopKeeping(1) == nil, "requested once, however many readers detect it")
        #expect(registry.handleStreamStart(callNumber: 1, streamID: "s1", epoch: "e") == nil)
        data(4, #"[{"id":1,"title":"b"}]"#)
        #expect(patch(5, #"[{"op":"replace","path":"/0/title","value":"c"}]"#) == nil)
        #expect(relay.currentValue.update.map { String(decoding: $0, as: UTF8.self) } == #"[{"id":1,"title":"c"}]"#)
        #expect(relay.currentValue.count == 4)
    }

    @Test("only types that support incremental changes have an incremental copy")
    func kinds() {
        #expect(IncrementalStateFactory.make(for: [Item].self) == nil)
        #expect(IncrementalStateFactory.make(for: Int.self) == nil)
        #expect(IncrementalStateFactory.make(for: Items.self) != nil)
    }
}
