import Synchronization
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

/// Responses of calls that ran in place and wait for the write of their changes.
@Suite(.timeLimit(.minutes(5))) struct CommitGateTests {
    private final class Notes: CallResponder {
        var lines: [String] = []
        /// Called with each line.
        var then: (String) -> Void = { _ in }

        func answer(
            _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>,
            of call: ResponseAwaitingCommit
        ) {
            var line = "\(call.weight) \(String(decoding: callID, as: UTF8.self)) "
            switch outcome {
            case .success(let result): line += String(decoding: result, as: UTF8.self)
            case .failure(let error): line += (error as? TrebuchetError)?.message ?? "\(error)"
            }
            lines.append(line)
            then(line)
        }
    }

    private struct Broken: Error {}

    private func add(
        _ id: String, _ result: String?, until deadline: UInt64 = 100, to gate: CommitGate, _ notes: Notes
    ) {
        let call = ResponseAwaitingCommit(notes, weight: id.utf8.count, deadline: deadline, limit: .seconds(3))
        Array(id.utf8).withUnsafeBytes { id in
            guard let result else { return gate.append(call, id, .failure(Broken())) }
            Array(result.utf8).withUnsafeBytes { gate.append(call, id, .success($0)) }
        }
    }

    @Test("each call gets its own response, in order, and the gate is empty afterwards")
    func order() {
        let (gate, notes) = (CommitGate(), Notes())
        for round in 0..<2 {
            notes.lines = []
            add("1", "true", to: gate, notes)
            add("22", "", to: gate, notes)
            add("333", nil, to: gate, notes)
            add("", #"{"a":\#(round)}"#, to: gate, notes)
            gate.answerAll(nil)
            #expect(notes.lines == ["1 1 true", "2 22 ", "3 333 Broken()", #"0  {"a":\#(round)}"#])
            gate.answerAll(nil)
            #expect(notes.lines.count == 4)
        }
    }

    @Test("a failed write is an error for all waiting calls")
    func failure() {
        let (gate, notes) = (CommitGate(), Notes())
        add("1", "true", to: gate, notes)
        add("2", nil, to: gate, notes)
        gate.answerAll(TrebuchetError(.unknownOutcome, "the disk is full"))
        #expect(notes.lines == ["1 1 the disk is full", "1 2 the disk is full"])
    }

    @Test("a call past its deadline is answered once, and the others later")
    func late() {
        let (gate, notes) = (CommitGate(), Notes())
        for (id, time) in [("a", 30), ("b", 10), ("c", 20), ("d", 10)] as [(String, UInt64)] {
            add(id, "\"\(id)\"", until: time, to: gate, notes)
        }
        #expect(gate.timeOut(at: 9) == 10)
        #expect(notes.lines == [])
        // A notified caller may call again at once.
        notes.then = { line in if line.hasPrefix("1 b") { add("e", "5", until: 40, to: gate, notes) } }
        #expect(gate.timeOut(at: 10) == 20)
        let late = "the call took longer than 3.0 seconds"
        #expect(notes.lines == ["1 b \(late)", "1 d \(late)"])
        #expect(gate.timeOut(at: 30) == 40)
        #expect(notes.lines.dropFirst(2) == ["1 a \(late)", "1 c \(late)"])
        gate.answerAll(nil)
        #expect(notes.lines.dropFirst(4) == ["1 e 5"])
        #expect(gate.timeOut(at: .max) == .max)
    }

    @Test("calls that wait for a failed write stay before later calls, each with its own deadline")
    func waitingBeforeLater() {
        let (gate, later, notes) = (CommitGate(), CommitGate(), Notes())
        for (id, result, time) in [("a", "1", 10), ("b", nil, 40), ("c", "3", 30)] as [(String, String?, UInt64)] {
            add(id, result, until: time, to: gate, notes)
        }
        for (id, result, time) in [("d", "4", 20), ("e", nil, 50), ("f", "6", 60)] as [(String, String?, UInt64)] {
            add(id, result, until: time, to: later, notes)
        }
        #expect(gate.timeOut(at: 10) == 30 && later.timeOut(at: 20) == 50)
        notes.lines = []
        gate.appendEntries(of: later)
        #expect(later.count == 0 && gate.count == 4)
        #expect(gate.timeOut(at: 30) == 40)
        let late = "the call took longer than 3.0 seconds"
        gate.answerAll(nil)
        #expect(notes.lines == ["1 c \(late)", "1 b Broken()", "1 e Broken()", "1 f 6"])
        #expect(gate.count == 0 && gate.timeOut(at: .max) == .max)
    }

    // MARK: In a server

    private func withDiary(
        _ change: (inout ServerLimits) -> Void = { _ in }, store: GatedStore, clock: TestTime? = nil,
        _ body: (Diary, TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        var limits = ServerLimits()
        change(&limits)
        try await withTestServer(reactors: 1, limits: limits, store: store, clock: clock) { server in
            await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
        } body: { client, server in
            try await body(client.resolve(Diary.self, id: "diary"), client, server)
        }
    }

    private func expectPersisted(_ text: String, _ store: GatedStore) async throws {
        let isPersisted = try await eventually { try await store.text("diary.pages") == text }
        #expect(isPersisted)
    }

    /// Writes a page and returns the error of the call at its time limit.
    private func timeOut(
        _ page: String, _ diary: Diary, _ server: TrebuchetServer, _ clock: TestTime
    ) async -> TrebuchetError? {
        let call = Task { try await diary.write(page) }
        #expect(await eventually { await server.counters().callsUnderWay == 1 })
        await clock.advance(by: .seconds(20))
        return await #expect(throws: TrebuchetError.self) { try await call.value }
    }

    @Test("a slow store makes the call fail at its deadline, and the change is persisted nevertheless")
    func deadline() async throws {
        let store = GatedStore()
        let clock = TestTime()
        try await withDiary({ $0.calls.timeout = .seconds(20) }, store: store, clock: clock) {
            (diary, _, server) async throws in
            store.close()
            for page in ["a", "b"] {
                let error = await timeOut(page, diary, server, clock)
                #expect(error?.code == .timeout)
                #expect(error?.message == "the call took longer than 20.0 seconds")
            }
            #expect(await server.counters().callsUnderWay == 0)
            store.open()
            try await expectPersisted(#"["a","b"]"#, store)
            #expect(try await diary.write("c") == 3)
        }
    }

    @Test("calls wait for an unreachable store no longer than their deadline")
    func deadlineAway() async throws {
        let store = GatedStore()
        let clock = TestTime()
        try await withDiary({ $0.calls.timeout = .seconds(20) }, store: store, clock: clock) {
            (diary, _, server) async throws in
            store.failWrites(StateStoreError(.unavailable, "the engine is away"))
            for page in ["a", "b"] {
                let error = await timeOut(page, diary, server, clock)
                #expect(error?.code == .timeout)
            }
            #expect(await server.counters().callsUnderWay == 0)
            store.failWrites(nil)
            let isPersisted = try await eventually {
                await clock.advance(by: StateWriter.retryInterval)
                return try await store.text("diary.pages") == #"["a","b"]"#
            }
            #expect(isPersisted)
            #expect(try await diary.write("c") == 3)
        }
    }

    @Test("calls that expire during a slow write leave no memory behind")
    func crowd() {
        let (gate, notes) = (CommitGate(), Notes())
        add("kept", "\"kept\"", until: .max, to: gate, notes)
        let result = "\"" + String(repeating: "x", count: 1_000) + "\""
        for number in 0..<10_000 {
            add("\(number)", result, until: UInt64(number), to: gate, notes)
            #expect(gate.timeOut(at: UInt64(number)) == .max)
        }
        #expect(notes.lines.count == 10_000)
        #expect(gate.byteCount < 100)
        gate.answerAll(nil)
        #expect(notes.lines.last == "4 kept \"kept\"")
    }

    @Test("calls that wait for the store count against limits, and release their quota")
    func limits() async throws {
        let store = GatedStore()
        try await withDiary({ $0.calls.perConnection = 2 }, store: store) { (_, _, server) async throws in
            store.close()
            let link = ServerConnectionTests.Link()
            let shard = server.shards[0]
            let connection = await shard.reactor.perform {
                let connection = ServerConnection(link, name: shard.newConnectionName(), shard: shard)
                for number in 0..<3 {
                    let message =
                        #"{"type":"invocation","payload":{"callID":"\#(number)","actorID":"diary","#
                        + #""targetIdentifier":"write(_:)","arguments":["a"]}}"#
                    Array(message.utf8).withUnsafeBytes { connection.receive($0) }
                }
                return connection
            }
            #expect(await shard.reactor.perform { link.texts.count } == 1)
            #expect(await shard.reactor.perform { link.texts[0].contains("ServerLimits.calls.perConnection") })
            #expect(await server.counters().callsUnderWay == 2)
            store.open()
            #expect(await eventually { await shard.reactor.perform { link.texts.count } == 3 })
            #expect(
                await shard.reactor.perform { Array(link.texts[1...]) } == [
                    #"{"type":"response","payload":{"callID":"0","result":1}}"#,
                    #"{"type":"response","payload":{"callID":"1","result":2}}"#,
                ])
            #expect(await shard.reactor.perform { connection.load.count == 0 && connection.load.bytes == 0 })
            await shard.reactor.perform { connection.linkDidClose() }
        }
    }

    @Test("a caller that disconnects before the response is dropped; its change is persisted")
    func disconnectedCaller() async throws {
        let store = GatedStore()
        try await withDiary(store: store) { (diary, client, server) async throws in
            store.close()
            let call = Task { try await diary.write("a") }
            await store.journal.wait(for: "write 1")
            #expect(await server.counters().callsUnderWay == 1)
            await client.close()
            await #expect(throws: TrebuchetError.self) { try await call.value }
            #expect(await eventually { await server.counters().connections == 0 })
            store.open()
            try await expectPersisted(#"["a"]"#, store)
        }
    }

    @Test("a server that shuts down answers the waiting calls")
    func drain() async throws {
        let store = GatedStore()
        try await withDiary(store: store) { (diary, _, server) async throws in
            store.close()
            let call = Task { try await diary.write("a") }
            await store.journal.wait(for: "write 1")
            let end = Task { await server.shutdown() }
            #expect(await eventually { server.status != .serving })
            store.open()
            #expect(try await call.value == 1)
            await end.value
        }
    }
}
