import Bytes
import Networking
import Platform
import TestSupport
import Testing
import Transports
import WebSockets

@testable import Trebuchet
@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// Calls of several hosts that wait for the same activation. Their messages are handled in one turn, so that none finds the actor active.
@Suite("Shared activations", .timeLimit(.minutes(5))) struct SharedActivationTests {
    /// A connection of a host that records the responses.
    ///
    /// `@unchecked Sendable`: used on the reactor of its server alone.
    private final class Link: MessageLink, @unchecked Sendable {
        let host: AddressKey?
        var isWritable: Bool { true }
        var memory: MemoryAccount? { nil }
        var texts: [String] = []

        init(_ host: AddressKey?) { self.host = host }

        func send(_ body: (inout ByteBuffer) -> Void) {
            var buffer = ByteBuffer()
            body(&buffer)
            texts.append(String(decoding: buffer.bytes, as: UTF8.self))
        }
        func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {}
        func inOneWrite(_ body: () -> Void) { body() }
        func sendDrainPing() {}
        func close(_ code: WebSocketCloseCode, reason: String) {}
        func abort() {}
        func pauseReading() {}
        func resumeReading() {}
    }

    private struct Peer: Sendable {
        let link: Link
        let connection: ServerConnection

        /// Returns the response to the call with this number.
        func response(_ number: Int) async -> String {
            var found: String?
            _ = await eventually {
                found = await connection.shard.reactor.perform {
                    link.texts.first { $0.contains(#""callID":"\#(number)""#) }
                }
                return found != nil
            }
            return found ?? "no response"
        }
    }

    private func connect(_ host: String, to server: TrebuchetServer) async -> Peer {
        let shard = server.shards[0]
        let address = SocketAddress(host: host, port: 1, isIPv6: false)
        return await shard.reactor.perform {
            let link = Link(AddressKey(address))
            let caller = Caller(connection: CallerConnection(principal: nil, remoteAddress: address))
            return Peer(
                link: link,
                connection: ServerConnection(link, name: shard.newConnectionName(), shard: shard, caller: caller))
        }
    }

    /// Sends calls in one turn.
    private func call(
        _ calls: (peer: Peer, number: Int, actor: String, target: String, arguments: String)...,
        at server: TrebuchetServer
    ) async {
        let messages = calls.map { call in
            (
                call.peer.connection,
                Array(
                    #"""
                    {"type":"invocation","payload":{"callID":"\#(call.number)","actorID":"\#(call.actor)",\#
                    "targetIdentifier":"\#(call.target)","arguments":[\#(call.arguments)]}}
                    """#.utf8)
            )
        }
        await server.shards[0].reactor.perform {
            for (connection, bytes) in messages { bytes.withUnsafeBytes { connection.receive($0) } }
        }
    }

    private func close(_ peers: Peer...) async {
        for peer in peers { await peer.connection.shard.reactor.perform { peer.connection.linkDidClose() } }
    }

    @Test("a host without activations left does not make others fail to join a room")
    func rooms() async throws {
        var limits = RoomLimits()
        limits.activationsPerHost = RateLimit(callsPerSecond: 1.0 / 3_600, burst: 1)
        try await RoomTestEnvironment.run(limits) { environment in
            let server = environment.server
            let eve = await connect("192.0.2.1", to: server)
            let (ada, bob) = (await connect("192.0.2.2", to: server), await connect("192.0.2.3", to: server))
            await call((eve, 1, "rooms/chat-0", "leave(token:)", "null"), at: server)
            #expect(await eve.response(1).contains("notJoined"))
            let (room, join) = ("rooms/chat-1", "join(presence:token:attempt:)")
            await call(
                (eve, 2, room, "leave(token:)", "null"), (ada, 2, room, join, "null,null,null"),
                (eve, 3, room, "leave(token:)", "null"), (bob, 2, room, join, "null,null,null"), at: server)
            #expect(await ada.response(2).contains(#""result""#))
            #expect(await bob.response(2).contains(#""result""#))
            #expect(await eve.response(2).contains("rateLimited"))
            #expect(await eve.response(3).contains("rateLimited"))
            await close(eve, ada, bob)
        }
    }

    @Test("a host that may load no more collections does not make others fail to load one")
    func collections() async throws {
        var limits = CollectionLimits()
        limits.collections = 2
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let server = environment.server
            let (eve, ada) = (await connect("192.0.2.1", to: server), await connect("192.0.2.2", to: server))
            let query = #"{"limit":5}"#
            // In use by a query, which a host that has loaded it may keep open.
            await call((eve, 1, "collections/one", "open(_:)", query), at: server)
            #expect(await eve.response(1).contains(#""result""#))
            // Unused: it can make room for a host that has loaded none, but not for another one.
            let mutation = EncodedJSON(DocumentMutation(number: 1, command: .add("a")).value)
            let other = environment.guest("carol")
            try await other.client.connect()
            _ = try await other.collection("two").commit([mutation], from: "0123456789abcdef")
            #expect(await eventually { await environment.host.collections["two"]?.whenLocal { $0.isUnused } == true })
            let name = "collections/three"
            await call((eve, 2, name, "get(_:)", query), (ada, 2, name, "get(_:)", query), at: server)
            #expect(await eve.response(2).contains("tooManyCollections"))
            #expect(await ada.response(2).contains(#""result""#))
            await close(eve, ada)
            await other.client.close()
        }
    }
}
