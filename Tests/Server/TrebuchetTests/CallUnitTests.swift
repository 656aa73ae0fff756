import Networking
import Synchronization
import Testing
import TrebuchetTesting
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("Caller connections and errors of calls") struct CallUnitTests {
    // MARK: Actors

    @Test("a remote actor is not registered as a local one")
    func elsewhere() async throws {
        try await withTestServer { server in
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "list")
        } body: { client, server in
            let remote = try client.resolve(TodoList.self, id: "list")
            let record = LocalActors().record(of: remote, name: "list", holding: true, in: server.actorSystem)
            let operation = try record.isolated { throw CancellationError() }
            let error = await #expect(throws: TrebuchetError.self) { _ = try await operation(nil) }
            #expect(error?.code == .internal)
            #expect(error?.message.contains("but not local") == true)
        }
    }

    // MARK: Connections

    @Test("close handlers run once and in order, or at once when the connection is closed already")
    func closing() {
        let notes = Mutex<[String]>([])
        @Sendable func note(_ text: String) { notes.withLock { $0.append(text) } }
        let connection = CallerConnection(principal: Principal(id: "ada"), remoteAddress: nil)
        #expect(
            connection.isOpen && !connection.isServer && connection.principal?.id == "ada" && connection.host == nil)
        for number in 0..<20 { connection.onClose { note("\(number)") } }
        let cancelled = connection.onClose { note("cancelled") }
        cancelled.cancel()
        cancelled.cancel()
        connection.endsStreams { name, error in note("end \(name) \(error.code)") }
        connection.endStreams(ofActor: "a", TrebuchetError(.unauthorized, "out"))
        #expect(notes.withLock { $0 } == ["end a unauthorized"])
        connection.didClose()
        #expect(!connection.isOpen)
        #expect(notes.withLock { $0 } == ["end a unauthorized"] + (0..<20).map(String.init))
        let late = connection.onClose { note("late") }
        late.cancel()
        connection.didClose()
        connection.endStreams(ofActor: "a", TrebuchetError(.unauthorized, "out"))
        #expect(notes.withLock { $0.count } == 22)
        #expect(notes.withLock { $0.last } == "late")
        connection.principal = Principal(id: "bob")
        #expect(connection.principal?.id == "bob")
    }

    @Test("a cancelled or completed close handler frees the values that it captured")
    func freed() {
        final class RetainedByClosure: Sendable {}
        let connection = CallerConnection(principal: nil, remoteAddress: nil)
        weak var first: RetainedByClosure?
        weak var second: RetainedByClosure?
        do {
            let (one, other) = (RetainedByClosure(), RetainedByClosure())
            (first, second) = (one, other)
            connection.onClose { _ = one }.cancel()
            connection.onClose { _ = other }
        }
        #expect(first == nil && second != nil)
        connection.didClose()
        #expect(second == nil)
    }

    @Test("a connection equals only itself; its host is its source network, or nil for loopback")
    func identity() {
        func connection(_ text: String) -> CallerConnection {
            CallerConnection(principal: nil, remoteAddress: SocketAddress(literal: text, port: 1))
        }
        let one = connection("192.0.2.1")
        #expect(one == one && one != connection("192.0.2.1"))
        #expect(Set([one, one, connection("192.0.2.1")]).count == 2)
        #expect(one.host != nil && one.host == connection("192.0.2.1").host && one.host != connection("192.0.2.2").host)
        #expect(connection("2001:db8::1").host == connection("2001:db8::2").host)
        #expect(connection("127.0.0.1").host == nil && connection("::1").host == nil)
        #expect(CallerConnection(ofServer: ()).isServer)
    }

    // MARK: Failures

    private struct PublicError: Error, Codable { var text = "for clients" }
    private struct UndisclosedError: Error, CustomStringConvertible { var description = "a secret" }
    /// Claims to be encodable, but its encoding fails.
    private struct Unwritable: Error, Encodable, CustomStringConvertible {
        var description = "a secret"
        func encode(to encoder: any Encoder) throws { throw CancellationError() }
    }

    private func failure(_ error: any Error, shows: Bool = false, log: @escaping @Sendable (String) -> Void = { _ in })
        -> CallFailure
    {
        CallFailure(
            error, of: "the method", coder: ValueCoder(), ErrorDisclosure(showsText: shows, log: log))
    }

    @Test("public errors go to clients; other errors are replaced by a number, and the log has the text")
    func disclosure() {
        let lines = Mutex<[String]>([])
        let log: @Sendable (String) -> Void = { line in lines.withLock { $0.append(line) } }
        let own = failure(TrebuchetError(.rateLimited, "later", retryAfter: .milliseconds(250)), log: log)
        #expect(own.code == .rateLimited && own.message == "later" && own.retryAfterMilliseconds == 250)
        #expect(own.type == nil && own.data == nil)
        let cancelled = failure(CancellationError(), log: log)
        #expect(cancelled.code == .cancelled && cancelled.message == "the call was cancelled")
        let disclosed = failure(PublicError(), log: log)
        #expect(disclosed.code == .application && disclosed.type?.hasSuffix("PublicError") == true)
        #expect(disclosed.data == Array(#"{"text":"for clients"}"#.utf8))
        #expect(lines.withLock { $0 } == [])
        for error in [UndisclosedError(), Unwritable()] as [any Error] {
            let undisclosed = failure(error, log: log)
            #expect(undisclosed.code == .application && undisclosed.type == nil && undisclosed.data == nil)
            #expect(!undisclosed.message.contains("secret"))
            let number = undisclosed.message.firstRange(of: "error ").map {
                undisclosed.message[$0.upperBound...].prefix(8)
            }
            #expect(number?.allSatisfy(\.isHexDigit) == true)
            let line = lines.withLock { $0.last } ?? ""
            #expect(line.hasPrefix("error \(number ?? ""): the method threw ") && line.hasSuffix(": a secret"))
            let shown = failure(error, shows: true, log: log)
            #expect(shown.message == "a secret" && shown.type?.isEmpty == false)
        }
        #expect(lines.withLock { $0.count } == 2)
    }

    @Test("the log has at most 4,000 characters of an error's text")
    func longText() {
        let lines = Mutex<[String]>([])
        _ = failure(UndisclosedError(description: String(repeating: "x", count: 4_001))) { line in
            lines.withLock { $0.append(line) }
        }
        #expect(lines.withLock { $0[0].split(separator: " ").last?.count } == 4_000)
    }

    @Test("a failure that exceeds the size limit is truncated; a smaller one is unchanged", arguments: [0, 1])
    func truncated(missing: Int) {
        let message = String(repeating: "m", count: 300)
        let failure = failure(TrebuchetError(.application, message, type: "Type", data: [1, 2, 3]))
        let count = 256 + 6 * ("application".utf8.count + 300 + 4) + 3
        let truncated = failure.truncated(count - missing)
        if missing == 0 {
            #expect(truncated.message == message && truncated.type == "Type" && truncated.data == [1, 2, 3])
        } else {
            #expect(truncated.message.hasPrefix(String(repeating: "m", count: 200) + "\u{2026} (truncated: the error"))
            #expect(truncated.type == nil && truncated.data == nil && truncated.code == .application)
        }
    }

    @Test(
        "a code of 64 bytes survives truncation of a failure; a longer one does not",
        arguments: [(64, true), (65, false)])
    func longCode(count: Int, isShort: Bool) {
        let code = ErrorCode(rawValue: String(repeating: "c", count: count))
        let cut = failure(TrebuchetError(TrebuchetError.Code(code), "m")).truncated(1)
        #expect(cut.code == (isShort ? code : .application))
    }

    // MARK: Names

    @Test("actor names and state keys are compared by bytes")
    func names() {
        #expect(ActorName("\u{e9}") != ActorName("e\u{301}") && ActorName("a") == ActorName("a"))
        #expect(Set([ActorName("\u{e9}"), ActorName("e\u{301}"), ActorName("\u{e9}")]).count == 2)
        #expect(ActorName("ab").isBehind("a") && !ActorName("a").isBehind("a") && !ActorName("ba").isBehind("a"))
        let keys = [
            StateKey("a", "bc"), StateKey("ab", "c"), StateKey("a", "b"), StateKey("\u{e9}", ""),
            StateKey("e\u{301}", ""),
        ]
        #expect(Set(keys + keys).count == keys.count)
        #expect(Set(keys.map(\.hashValue)).count == keys.count)
        for (index, one) in keys.enumerated() {
            for (other, another) in keys.enumerated() { #expect((one == another) == (index == other)) }
        }
    }
}
