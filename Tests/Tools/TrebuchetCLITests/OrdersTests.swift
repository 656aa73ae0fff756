import Benchmarks
import Commands
import Foundation
import Testing
import Trebuchet
import TrebuchetTesting

/// The actor that `trebuchet bench rpc --call` calls.
@Suite(.timeLimit(.minutes(5))) struct OrdersTests {
    @Test("an order is summed up equally with @Wire and without it")
    func orders() async throws {
        try await withTestServer { server in
            await server.expose(Orders(actorSystem: server.actorSystem), as: "orders")
        } body: { client, _ in
            let orders = try client.resolve(Orders.self, id: "orders")
            let text = Array(CallRounds.Call.orderText.utf8)
            #expect((190...240).contains(text.count))
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .custom { _ in Date(timeIntervalSince1970: 1_767_225_600.25) }
            let receipt = try await orders.place(decoder.decode(Order.self, from: Data(text)))
            let wire = try await orders.submit(decoder.decode(WireOrder.self, from: Data(text)))
            #expect(receipt.order.uuidString == "0B5E9F4C-7C1B-4E0B-9C55-0D6E1F6A2B3C")
            #expect(abs(receipt.total - 113.97) < 1e-9)
            #expect((receipt.count, receipt.placed.timeIntervalSince1970) == (15, 1_767_225_600.25))
            #expect(wire.order == receipt.order)
            #expect((wire.total, wire.count, wire.placed) == (receipt.total, receipt.count, receipt.placed))
            #expect(try await orders.scale(1.5) == 3.75)
            #expect(try await orders.later(1) == 2)
        }
    }

    @Test("an unknown call, or a server in addition, is refused by name")
    func refused() async throws {
        for (line, text) in [
            (["--call", "sing"], "--call sing: one of add place submit scale later authorised crossing"),
            (["--call", "add", "--url", "ws://127.0.0.1:1"], "--url cannot be combined with --call"),
        ] {
            let error = await #expect(throws: UsageError.self) {
                let spec = try #require(BenchCommand.spec.subcommands.first { $0.name == "bench rpc" })
                try await spec.run(try ParsedArguments(line, for: spec))
            }
            #expect("\(try #require(error))".contains(text))
        }
    }
}
