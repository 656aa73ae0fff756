import Foundation
import TestSupport
import Testing
import Transports

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// A transport that brings no loop: its clients live on a Dispatch queue, as they do where there are no reactors.
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
        receiver.opened(OverwritingLink(receiver))
    }
}

/// Answers each call on another thread, from memory that is written over before the client's loop goes on.
private final class OverwritingLink: ClientLink {
    private struct Call: Decodable {
        struct Payload: Decodable {
            let callID: String
            let arguments: [String]
        }
        let payload: Payload
    }

    private let receiver: ConnectionReceiver
    var session: String? { nil }

    init(_ receiver: ConnectionReceiver) { self.receiver = receiver }

    func send(_ message: [UInt8]) {
        guard let call = try? JSONDecoder().decode(Call.self, from: Data(message)).payload else { return }
        let answer = #"{"type":"response","payload":{"callID":"\#(call.callID)","result":\#(call.arguments[0])}}"#
        let receiver = receiver
        let overwritten = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            var bytes = Array(answer.utf8)
            bytes.withUnsafeMutableBytes { bytes in
                receiver.received(UnsafeRawBufferPointer(bytes))
                for index in bytes.indices { bytes[index] = UInt8(ascii: "x") }
            }
            overwritten.signal()
        }
        // The loop's thread: it reads nothing until then.
        overwritten.wait()
    }

    func close() { receiver.closed(TransportError(.closed, "closed by its client")) }
}

@Suite(.timeLimit(.minutes(1))) struct ForeignTransportTests {
    private func withClient(_ body: (TrebuchetClient, Journal) async throws -> Void) async throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0))
        let journal = Journal()
        await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        await server.expose(Registry(actorSystem: server.actorSystem), as: "registry")
        await server.expose(Till(journal: journal, actorSystem: server.actorSystem), as: "till")
        let transport: any ClientTransport = ForeignTransport(server: server)
        let client = TrebuchetClient(transport: transport)
        try await client.connect()
        try await body(client, journal)
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a client on a Dispatch queue calls, observes, and connects again")
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

    @Test("its timers go: a call that is not answered ends at its deadline, and its server hears of it")
    func deadlines() async throws {
        try await withClient { client, journal in
            let till = try client.resolve(Till.self, id: "till")
            let error = await #expect(throws: TrebuchetError.self) {
                try await withDeadline(.milliseconds(50)) { try await till.payOnce("ada") }
            }
            #expect(error?.code == .timeout)
            journal.note("ada go")
        }
    }

    @Test("an actor that lives on the queue is called by the server, and shows its state here")
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

    @Test("what is told off the loop is copied: its memory may be written over at once")
    func copies() async throws {
        let transport: any ClientTransport = OverwritingTransport()
        let client = TrebuchetClient(transport: transport)
        try await client.connect()
        let list = try client.resolve(TodoList.self, id: "todos")
        for number in 1...20 { #expect(try await list.add(title: "\(number)") == number) }
        await client.close()
    }
}
