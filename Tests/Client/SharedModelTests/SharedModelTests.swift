import Foundation
import SharedModel
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetClient

/// A transport without an event loop: its client runs on a Dispatch queue, as on platforms without reactors.
private struct ForeignTransport: ClientTransport {
    let server: TrebuchetServer
    var address: String { "elsewhere" }

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        try await TrebuchetTransport.local(server).open(request, receiver)
    }
}

/// The module `SharedModel` was compiled against the client's module alone.
@Suite(.timeLimit(.minutes(5))) struct SharedModelTests {
    private func withAuction(_ body: (TrebuchetClient, Auction) async throws -> Void) async throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0))
        await server.expose(Auction(actorSystem: server.actorSystem), as: "auction")
        let client = TrebuchetClient(transport: ForeignTransport(server: server))
        try await client.connect()
        try await body(client, try client.resolve(Auction.self, id: "auction"))
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("the actors of a shared model are called at a server, and throw their own errors")
    func calls() async throws {
        try await withAuction { _, auction in
            try await auction.offer("Chair", as: "chair")
            #expect(try await auction.raise("chair", by: 5, for: "ada") == 5)
            await #expect(throws: BidTooLow(least: 1)) { try await auction.raise("chair", by: 0, for: "bob") }
        }
    }

    @Test("a type with generated code is an argument and a result like others")
    func wireValues() async throws {
        try await withAuction { _, auction in
            let lot = try await auction.appraise(Lot(title: "A \"chair\"", leader: "ada"), bids: [3, 7])
            #expect(lot == Lot(title: "A \"chair\"", price: 7, leader: "ada"))
            #expect(try await auction.appraise(Lot(title: ""), bids: []) == Lot(title: ""))
        }
    }

    @Test("states and events of a shared model arrive, complete and through a filter")
    func streams() async throws {
        try await withAuction { _, auction in
            try await auction.offer("Chair", as: "chair")
            var sales = await auction.observeSale().makeAsyncIterator()
            var chairs = await auction.observeSale(filter: .path("/lots/chair"), as: Lot?.self).makeAsyncIterator()
            var calls = await auction.observeCalls().makeAsyncIterator()
            #expect(await sales.next()?.lots["chair"]?.price == 0)
            #expect(await chairs.next()??.price == 0)
            _ = try await auction.raise("chair", by: 5, for: "ada")
            #expect(await sales.next()?.lots["chair"] == Lot(title: "Chair", price: 5, leader: "ada"))
            #expect(await chairs.next()??.leader == "ada")
            #expect(try await calls.next() == "ada: 5")
        }
    }

    @Test("an actor of a shared model lives in the client and is called by the server")
    func ownActors() async throws {
        try await withAuction { client, auction in
            let ada = Bidder(name: "Ada", actorSystem: client.actorSystem)
            var asked = await ada.observeAsked().makeAsyncIterator()
            #expect(await asked.next() == 0)
            try await auction.enter(ada)
            #expect(try await auction.ask("More") == ["Ada: More!"])
            #expect(await asked.next() == 1)
        }
    }
}
