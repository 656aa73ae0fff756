import Foundation
import Synchronization
import TestSupport
import Testing
import Transports

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// A transport without an event loop: its clients run on a Dispatch queue, as on platforms without reactors.
private struct ForeignTransport: ClientTransport {
    let server: TrebuchetServer
    var address: String { "foreign" }

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        try await TrebuchetTransport.local(server).open(request, receiver)
    }
}

/// A transport without a server, whose links answer calls themselves.
private struct OverwritingTransport: ClientTransport {
    var address: String { "overwriting" }

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        receiver.linkDidOpen(OverwritingLink(receiver))
    }
}

/// Answers each call on another thread, from memory that is overwritten before the client's loop continues.
private final class OverwritingLink: ClientLink {
    private struct Call: Decodable {
        struct Payload: Decodable {
            let callID: String
            let arguments: [String]
        }
        let payload: Payload
    }

    private let receiver: ConnectionReceiver
    var callSession: String? { nil }

    init(_ receiver: ConnectionReceiver) { self.receiver = receiver }

    func send(_ message: [UInt8]) {
        guard let call = try? JSONDecoder().decode(Call.self, from: Data(message)).payload else { return }
        let answer = #"{"type":"response","payload":{"callID":"\#(call.callID)","result":\#(call.arguments[0])}}"#
        let receiver = receiver
        let overwritten = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            var bytes = Array(answer.utf8)
            bytes.withUnsafeMutableBytes { bytes in
                receiver.didReceive(UnsafeRawBufferPointer(bytes))
                for index in bytes.indices { bytes[index] = UInt8(ascii: "x") }
            }
            overwritten.signal()
        }
        // Blocks the loop's thread, which reads nothing until then.
        overwritten.wait()
    }

    func close() { receiver.linkDidClose(TransportError(.closed, "closed by its client")) }
}

/// A transport over a proxy, which always accepts and reports a failed handshake while its server is down.
private final class ProxyTransport: ClientTransport {
    /// The attempts that fail, counted from 1.
    let failing: Set<Int>
    private let attempts = Mutex((count: 0, last: nil as OverwritingLink?))
    var address: String { "relayed" }

    init(failing: Set<Int>) { self.failing = failing }

    var attemptCount: Int { attempts.withLock { $0.count } }

    func breakConnection() { attempts.withLock { $0.last }?.close() }

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        let link = OverwritingLink(receiver)
        let number = attempts.withLock { attempts in
            attempts.count += 1
            attempts.last = link
            return attempts.count
        }
        if failing.contains(number) { throw TransportError(.handshake, "the server is away") }
        receiver.linkDidOpen(link)
    }
}

@Suite(.timeLimit(.minutes(5))) struct ForeignTransportTests {
    private func withClient(_ body: (TrebuchetClient, Journal) async throws -> Void) async throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0))
        let journal = Journal()
        await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        await server.expose(Registry(actorSystem: server.actorSystem), as: "registry")
        await server.expose(BlockingPaymentCounter(journal: journal, actorSystem: server.actorSystem), as: "till")
        let transport: any ClientTransport = ForeignTransport(server: server)
        let client = TrebuchetClient(transport: transport)
        try await client.connect()
        try await body(client, journal)
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a client on a Dispatch queue calls, observes and reconnects")
    func calls() async throws {
        try await withClient { client, _ in
            #expect(client.core.loop is DispatchLoop)
            let list = try client.resolve(TodoList.self, id: "todos")
            var states = await list.observeState().makeAsyncIterator()
            #expect(await states.next()?.items == [])
            #expect(try await list.add(title: "a") == 1)
            #expect(await states.next()?.items == ["a"])
            #expect(try await list.addLater(title: "b") == 2)
            #expect(await states.next()?.items == ["a", "b"])
            await client.disconnect()
            #expect(client.connectionState.currentValue == .disconnected(nil))
            await #expect(throws: TrebuchetError.self) { try await list.add(title: "c") }
            try await client.connect()
            #expect(try await list.add(title: "c") == 3)
        }
    }

    @Test("its timers fire: an unanswered call ends at its deadline, and its server receives the cancellation")
    func deadlines() async throws {
        try await withClient { client, journal in
            let till = try client.resolve(BlockingPaymentCounter.self, id: "till")
            let error = await #expect(throws: TrebuchetError.self) {
                try await withDeadline(.milliseconds(50)) { try await till.payOnce("ada") }
            }
            #expect(error?.code == .timeout)
            journal.record("ada go")
        }
    }

    @Test("the server calls an actor that lives on the queue, and its state is observed locally")
    func ownActors() async throws {
        try await withClient { client, _ in
            let own = TodoList(actorSystem: client.actorSystem)
            var states = await own.observeState().makeAsyncIterator()
            #expect(await states.next()?.items == [])
            let registry = try client.resolve(Registry.self, id: "registry")
            #expect(try await registry.fill(own, title: "a") == 1)
            #expect(await states.next()?.items == ["a"])
            let items = await own.whenLocal { $0.state.items }
            #expect(items == ["a"])
        }
    }

    @Test("a failed handshake of a proxy is final for a first connection, and retried for a client that was connected")
    func relayed() async throws {
        let transport = ProxyTransport(failing: [1, 3, 4])
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .zero
        let client = TrebuchetClient(transport: transport, options: options)
        await #expect(throws: TransportError.self) { try await client.connect() }
        #expect(transport.attemptCount == 1)
        try await client.connect()
        transport.breakConnection()
        let list = try client.resolve(TodoList.self, id: "todos")
        #expect(await eventually { transport.attemptCount == 5 })
        #expect(try await list.add(title: "5") == 5)
        await client.close()
    }

    @Test("a failed token provider is reported as such, whatever it throws")
    func noToken() async throws {
        var options = TrebuchetClient.Options()
        options.token = { throw TransportError(.tls, "the directory's certificate is too old") }
        let client = TrebuchetClient(transport: OverwritingTransport(), options: options)
        let error = await #expect(throws: TransportError.self) { try await client.connect() }
        #expect(error?.code == .token)
        #expect((error?.cause as? TransportError)?.code == .tls)
        await client.close()
    }

    @Test("the transport linked in Docs/Guides/Client.md carries calls, states and the session")
    func sample() async throws {
        let guide = packageRoot.appending(path: "Docs/Guides/Client.md")
        let page = try String(contentsOf: guide, encoding: .utf8)
        #expect(page.contains("(../../Tests/Server/TrebuchetTests/SocketTransport.swift)"))

        let server = TrebuchetServer(transport: .webSocket(port: 0))
        let port = try await server.start().port
        await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        let transport: any ClientTransport = SocketTransport(address: "ws://127.0.0.1:\(port)/")
        let client = TrebuchetClient(transport: transport)
        try await client.connect()
        #expect(await client.core.loop.perform { client.core.link?.callSession } != nil)
        let list = try client.resolve(TodoList.self, id: "todos")
        var states = await list.observeState().makeAsyncIterator()
        #expect(await states.next()?.items == [])
        #expect(try await list.add(title: "a") == 1)
        #expect(await states.next()?.items == ["a"])
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("messages delivered off the loop are copied: their memory may be overwritten at once")
    func copies() async throws {
        let transport: any ClientTransport = OverwritingTransport()
        let client = TrebuchetClient(transport: transport)
        try await client.connect()
        let list = try client.resolve(TodoList.self, id: "todos")
        for number in 1...20 { #expect(try await list.add(title: "\(number)") == number) }
        await client.close()
    }
}
