import Foundation
import Synchronization
import TestSupport
import Testing
import Transports

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// A client whose link misbehaves: it answers and closes inside the calls that the client makes to it.
@Suite(.timeLimit(.minutes(5))) struct MisbehavingTransportTests {
    private struct SentMessage: Decodable {
        struct Payload: Decodable {
            let callID: String?
            let targetIdentifier: String?
        }
        let type: String
        let payload: Payload
    }

    private struct Script: ClientTransport {
        let script: @Sendable (Link, SentMessage) -> Void
        var onClose: @Sendable (Link) -> Void = { _ in }
        var address: String { "script" }

        func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
            receiver.linkDidOpen(Link(receiver, self))
        }
    }

    private final class Link: ClientLink {
        let receiver: ConnectionReceiver
        let script: Script
        private let isClosed = Atomic<Bool>(false)
        var callSession: String? { nil }

        init(_ receiver: ConnectionReceiver, _ script: Script) {
            self.receiver = receiver
            self.script = script
        }

        func send(_ message: [UInt8]) {
            guard !isClosed.load(ordering: .relaxed),
                let sent = try? JSONDecoder().decode(SentMessage.self, from: Data(message))
            else { return }
            script.script(self, sent)
        }

        func close() {
            script.onClose(self)
            fail()
        }

        func fail() {
            guard !isClosed.exchange(true, ordering: .relaxed) else { return }
            receiver.linkDidClose(TransportError(.closed, "as the script says"))
        }

        func tell(_ text: String) { Array(text.utf8).withUnsafeBytes { receiver.didReceive($0) } }

        func answer(_ callID: String?, _ result: String) {
            tell(#"{"type":"response","payload":{"callID":"\#(callID ?? "")","result":\#(result)}}"#)
        }
    }

    @Test("a stream that the server starts repeatedly under new names has one name, and calls continue")
    func startedTwice() async throws {
        var options = TrebuchetClient.Options()
        options.callTimeout = .seconds(10)
        let client = TrebuchetClient(
            transport: Script { link, sent in
                guard sent.type == "invocation" else { return }
                guard sent.payload.targetIdentifier == "observeState" else {
                    return link.answer(sent.payload.callID, "1")
                }
                link.tell(#"{"type":"hello","payload":{"limits":{}}}"#)
                for number in 1...100 {
                    link.tell(
                        #"{"type":"streamStart","payload":{"streamID":"s\#(number)","callID":"\#(sent.payload.callID ?? "")","#
                            + #""actorID":"list","targetIdentifier":"observeState","epoch":"a"}}"#)
                }
            }, options: options)
        try await client.connect()
        let list = try client.resolve(TodoList.self, id: "list")
        let states = await list.observeState()
        async let one = list.add(title: "a")
        async let two = list.add(title: "b")
        _ = try await (one, two)
        let core = client.core
        #expect(await core.loop.perform { [core.streams.count, core.streams.startingCount] } == [1, 0])
        withExtendedLifetime(states) {}
        await client.close()
    }

    @Test("calls that a link answers inside send are no longer in flight")
    func answeredInPlace() async throws {
        let client = TrebuchetClient(
            transport: Script { link, sent in if sent.type == "invocation" { link.answer(sent.payload.callID, "1") } })
        try await client.connect()
        let list = try client.resolve(TodoList.self, id: "list")
        for _ in 1...3 { _ = try await list.add(title: "a") }
        let core = client.core
        #expect(await core.loop.perform { core.outboundCalls.underWay } == 0)
        await client.close()
    }

    @Test("a call over a link that closes inside send ends as over a broken connection")
    func closedInSend() async throws {
        var options = TrebuchetClient.Options()
        options.callTimeout = .seconds(30)
        options.reconnect = .never
        let client = TrebuchetClient(
            transport: Script { link, sent in if sent.type == "invocation" { link.fail() } }, options: options)
        try await client.connect()
        let list = try client.resolve(TodoList.self, id: "list")
        let error = await #expect(throws: TrebuchetError.self) { _ = try await list.add(title: "a") }
        #expect(error?.code == .unknownOutcome)
        await client.close()
    }

    @Test("a connection that breaks inside the client's hello is reported closed, and made again")
    func closedInHello() async throws {
        let opened = Atomic<Int>(0)
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .zero
        let client = TrebuchetClient(
            transport: Script { link, sent in
                if sent.type == "hello", opened.add(1, ordering: .relaxed).newValue % 2 == 1 { link.fail() }
                if sent.type == "invocation" { link.answer(sent.payload.callID, "1") }
            }, options: options)
        try await client.connect()
        #expect(await eventually { opened.load(ordering: .relaxed) == 2 })
        let list = try client.resolve(TodoList.self, id: "list")
        #expect(try await list.add(title: "a") == 1)
        #expect(client.connectionState.currentValue == .connected)
        await client.close()
    }

    @Test("without further attempts, a connection that breaks inside the hello stays closed")
    func closedInHelloForGood() async throws {
        var options = TrebuchetClient.Options()
        options.reconnect = .never
        let client = TrebuchetClient(
            transport: Script { link, sent in if sent.type == "hello" { link.fail() } }, options: options)
        // The connection may have existed while the hello was sent.
        try? await client.connect()
        #expect(
            await eventually {
                if case .disconnected = client.connectionState.currentValue { true } else { false }
            })
        let list = try client.resolve(TodoList.self, id: "list")
        let error = await #expect(throws: TrebuchetError.self) { try await list.add(title: "a") }
        #expect(error?.code == .unavailable)
        await client.close()
    }

    @Test("a response delivered on another thread precedes the close delivered on the client's thread")
    func answeredElsewhere() async throws {
        var options = TrebuchetClient.Options()
        options.reconnect = .never
        let client = TrebuchetClient(
            transport: Script { link, sent in
                guard sent.type == "invocation" else { return }
                // Blocks the loop's thread until the response is delivered.
                let notified = DispatchSemaphore(value: 0)
                DispatchQueue.global().async {
                    link.answer(sent.payload.callID, "1")
                    notified.signal()
                }
                notified.wait()
                link.fail()
            }, options: options)
        try await client.connect()
        let list = try client.resolve(TodoList.self, id: "list")
        #expect(try await list.add(title: "a") == 1)
        #expect(
            await eventually {
                if case .disconnected = client.connectionState.currentValue { true } else { false }
            })
        await client.close()
    }

    @Test("events delivered inside send keep their order: the response, then the close")
    func answeredAndClosedInSend() async throws {
        var options = TrebuchetClient.Options()
        options.reconnect = .never
        let client = TrebuchetClient(
            transport: Script { link, sent in
                guard sent.type == "invocation" else { return }
                link.answer(sent.payload.callID, "1")
                link.fail()
            }, options: options)
        try await client.connect()
        let list = try client.resolve(TodoList.self, id: "list")
        #expect(try await list.add(title: "a") == 1)
        await client.close()
    }
}
