import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet

/// Reports properties of the task that runs it.
@Trebuchet
distributed actor QueueTestObserver {
    private let journal: Journal

    init(journal: Journal, actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func isCancelled() async -> Bool { Task.isCancelled }
    distributed func cancelOwnTask() async -> Bool {
        withUnsafeCurrentTask { $0?.cancel() }
        return Task.isCancelled
    }
    distributed func hold() async -> Bool {
        journal.record("held")
        await journal.wait(for: "go")
        return Task.isCancelled
    }
    distributed func go() async { journal.record("go") }
    distributed func caller() async -> String? { Caller.current?.principal?.id }
    /// Returns the caller as seen by a task that continues after the call.
    distributed func callerBehind() async -> String? {
        let task = Task {
            await journal.wait(for: "go")
            return Caller.current?.principal?.id
        }
        return await task.value
    }
}

/// Calls of methods that may suspend share tasks without visible effects.
@Suite(.timeLimit(.minutes(5))) struct CallQueueTests {
    private func calls<Result: Sendable>(
        _ count: Int, _ call: @escaping @Sendable (Int) async throws -> Result
    ) async throws -> [Result] {
        // `immediate`: all calls are sent before the first response.
        let calls = (0..<count).map { number in Task.immediate { try await call(number) } }
        var results: [Result] = []
        for call in calls { results.append(try await call.value) }
        return results
    }

    @Test("a call that suspends does not block the calls behind it", arguments: TestLink.allCases)
    func suspends(link: TestLink) async throws {
        let journal = Journal()
        try await withTestServer(link: link, reactors: 1) { server in
            await server.expose(QueueTestObserver(journal: journal, actorSystem: server.actorSystem), as: "onlooker")
        } body: { client, _ in
            let onlooker = try client.resolve(QueueTestObserver.self, id: "onlooker")
            // The last call releases the others.
            let results = try await calls(100) { number in
                guard number < 99 else {
                    try await onlooker.go()
                    return false
                }
                return number.isMultiple(of: 3) ? try await onlooker.hold() : try await onlooker.isCancelled()
            }
            #expect(results == Array(repeating: false, count: 100))
        }
    }

    @Test("a call that cancels its task cancels no other call", arguments: TestLink.allCases)
    func cancelsItself(link: TestLink) async throws {
        let journal = Journal()
        try await withTestServer(link: link, reactors: 1) { server in
            await server.expose(QueueTestObserver(journal: journal, actorSystem: server.actorSystem), as: "onlooker")
        } body: { client, _ in
            let onlooker = try client.resolve(QueueTestObserver.self, id: "onlooker")
            let results = try await calls(100) { number in
                number.isMultiple(of: 3) ? try await onlooker.cancelOwnTask() : try await onlooker.isCancelled()
            }
            #expect(results == (0..<100).map { $0.isMultiple(of: 3) })
        }
    }

    @Test("a call that its caller cancels cancels no other call", arguments: TestLink.allCases)
    func cancelledByCaller(link: TestLink) async throws {
        let journal = Journal()
        try await withTestServer(link: link, reactors: 1) { server in
            await server.expose(QueueTestObserver(journal: journal, actorSystem: server.actorSystem), as: "onlooker")
        } body: { client, _ in
            let onlooker = try client.resolve(QueueTestObserver.self, id: "onlooker")
            let pendingCall = Task.immediate { try await onlooker.hold() }
            await journal.wait(for: "held")
            pendingCall.cancel()
            let results = try await calls(100) { _ in try await onlooker.isCancelled() }
            #expect(results == Array(repeating: false, count: 100))
            await #expect(throws: CancellationError.self) { try await pendingCall.value }
            try await onlooker.go()
        }
    }

    @Test("each call has its caller in its task and in child tasks")
    func callers() async throws {
        let journal = Journal()
        let names = (0..<8).map { "caller-\($0)" }
        let keys = Dictionary(uniqueKeysWithValues: names.map { ($0, Principal(id: $0)) })
        try await withTestServer(reactors: 1, access: AccessPolicy(authenticate: AccessPolicy.apiKeys(keys))) {
            server in
            await server.expose(QueueTestObserver(journal: journal, actorSystem: server.actorSystem), as: "onlooker")
        } body: { server in
            var onlookers: [QueueTestObserver] = []
            for name in names {
                var options = TrebuchetClient.Options()
                options.token = { name }
                onlookers.append(try await server.connect(options).resolve(QueueTestObserver.self, id: "onlooker"))
            }
            let all = onlookers
            let results = try await calls(160) { number in
                let onlooker = all[number % 8]
                if number == 159 { try await onlooker.go() }
                return number.isMultiple(of: 3) ? try await onlooker.callerBehind() : try await onlooker.caller()
            }
            #expect(results == (0..<160).map { names[$0 % 8] })
        }
    }

    // MARK: Messages of one turn

    typealias Rig = ServerConnectionTests.Rig

    private func call(_ callID: String, _ target: String, _ argument: String, actor: String = "waiter") -> String {
        #"{"type":"invocation","payload":{"callID":"\#(callID)","actorID":"\#(actor)","targetIdentifier":"\#(target)","#
            + #""arguments":[\#(argument)]}}"#
    }

    private let cancelOfNothing = #"{"type":"cancel","payload":{"callID":"nobody"}}"#

    /// Delivers all messages in one turn.
    private func receive(_ texts: [String], _ rig: Rig) async {
        await rig.on { connection in
            for text in texts { Array(text.utf8).withUnsafeBytes { connection.receive($0) } }
        }
    }

    @Test("calls of one connection start in order, whatever messages come between them")
    func order() async {
        let between: [[String]] = [
            [], [cancelOfNothing], [call("s", "hold(_:)", "\"s\"")],
            [call("n", "now(_:)", "0", actor: "nobody")], [call("o", "observeState", "", actor: "list")],
        ]
        for more in between {
            let rig = await Rig()
            var texts: [String] = []
            for number in 1...9 {
                texts.append(call("\(number)", number % 3 == 0 ? "now(_:)" : "later(_:)", "\(number)"))
                texts += more.map { $0.replacing("\"callID\":\"s\"", with: "\"callID\":\"s\(number)\"") }
            }
            await receive(texts, rig)
            #expect(await eventually { rig.journal.entries.filter { Int($0) != nil }.count == 9 })
            #expect(rig.journal.entries.compactMap { Int($0) } == Array(1...9), "with \(more)")
        }
    }

    @Test("cancellation or closing of another connection does not change the order")
    func orderBesideOthers() async {
        let rig = await Rig()
        await rig.on { connection in
            let shard = connection.shard
            for number in 1...9 {
                Array(self.call("\(number)", "later(_:)", "\(number)").utf8).withUnsafeBytes { connection.receive($0) }
                let other = ServerConnection(
                    ServerConnectionTests.Link(), name: shard.newConnectionName(), shard: shard, largestMessage: .max)
                for text in [self.call("o", "later(_:)", "100"), self.cancelOfNothing] {
                    Array(text.utf8).withUnsafeBytes { other.receive($0) }
                }
                other.linkDidClose()
            }
        }
        #expect(await eventually { rig.journal.entries.count == 18 })
        #expect(rig.journal.entries.compactMap { Int($0) }.filter { $0 < 100 } == Array(1...9))
    }

    @Test("a second call with the same callID is rejected, and the first counts until it ends")
    func twins() async {
        let rig = await Rig()
        await receive(["a", "b"].map { call("1", "hold(_:)", "\"\($0)\"") }, rig)
        await rig.journal.wait(for: "a began")
        #expect(await rig.texts.contains { $0.contains("callID '1' is in use by an in-flight call") })
        #expect(await rig.on { [$0.load.count, $0.running.count, $0.calls.queued] } == [1, 1, 0])
        rig.journal.record("a go")
        #expect(await rig.waitFor(#""callID":"1","result":"went on""#))
        #expect(await rig.on { [$0.load.count, $0.load.bytes, $0.load.answered, $0.running.count] } == [0, 0, 0, 0])
        #expect(!rig.journal.entries.contains("b began"))
    }

    @Test("a call whose callID was reused is answered when the server stops, or ends with its connection")
    func twinAtTheEnd() async {
        for isClosing in [false, true] {
            let rig = await Rig()
            await receive([call("1", "hold(_:)", "\"a\"")], rig)
            await rig.journal.wait(for: "a began")
            await rig.on { connection in
                let twin = InFlightCall(
                    callID: Array("1".utf8), after: .seconds(60), on: connection.shard.reactor, byteCount: 0)
                twin.beginWork()
                connection.calls.list(twin)
                _ = connection.calls.count(twin)
                if isClosing { connection.linkDidClose() } else { connection.endWaitingCalls() }
            }
            let answers = await rig.texts.filter { $0.contains("unknownOutcome") && $0.contains(#""callID":"1""#) }
            #expect(answers.count == (isClosing ? 0 : 2))
            #expect(await rig.on { [$0.load.count, $0.running.count, $0.calls.displaced.count] } == [0, 0, 0])
            rig.journal.record("a go")
        }
    }
}
