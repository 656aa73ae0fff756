import Desk
import Foundation
import KitchenModel
import Loading
import QStream
import Relays
import SharedState
import StateMachines
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Each part of the example is tested separately, and then the whole.
@Suite(.timeLimit(.minutes(5))) @MainActor struct DeskTests {
    @Test("the machine is a function: one order at a time, and a rejection stays until it is read")
    func machine() {
        let order = Ordering.Input.order(dish: "Soup", table: 2)
        #expect(Ordering.reduceInput(.idle, order).0 == .sending(dish: "Soup"))
        #expect(Ordering.reduceInput(.idle, order).1 == .place(dish: "Soup", table: 2))
        #expect(Ordering.reduceInput(.sending(dish: "Sole"), order) == (nil, nil))
        #expect(Ordering.reduceIOResult(.sending(dish: "Soup"), .refused("none")).0 == .refused("none"))
        #expect(Ordering.reduceInput(.refused("none"), .dismiss).0 == .idle)
    }

    @Test("the machine with its effects is tested by a test store, without a kitchen")
    func effects() async {
        let store = TestStore(initialState: Ordering.State.idle) {
            Ordering()
        } withDependencies: {
            $0.orders = OrderClient { dish, table in
                guard dish == "Soup" else { throw SoldOut(dish: dish) }
                return table * 10
            }
        }
        await store.send(\.input.order, (dish: "Soup", table: 2)) { $0 = .sending(dish: "Soup") }
        await store.receive(\.ioResult.taken, 20) { $0 = .taken(number: 20) }
        await store.send(.input(.order(dish: "Sole", table: 2))) { $0 = .sending(dish: "Sole") }
        await store.receive(\.ioResult.refused) { $0 = .refused("\(SoldOut(dish: "Sole"))") }
        await store.send(\.input.dismiss) { $0 = .idle }
    }

    @Test("the stream is tested with a clock that the test advances")
    func search() async {
        let clock = TestClock()
        let search = await Search(clock: clock)
        let dishes = ["Salad", "Sole", "Soup"].map { Dish(name: $0, price: 1) }
        await search.dishes.set(dishes)
        #expect(search.found.currentValue == dishes)
        await search.text.set("s")
        await search.text.set("so")
        #expect(search.found.currentValue == dishes)
        await clock.advance(by: .milliseconds(200))
        for await found in search.found.stream where found == Array(dishes.dropFirst()) { break }
        #expect(search.found.currentValue.map(\.name) == ["Sole", "Soup"])
    }

    private func withDesk(_ body: (Desk, TrebuchetClient) async throws -> Void) async throws {
        try await withTestServer(link: .local) { server in
            await server.expose(Kitchen(actorSystem: server.actorSystem), as: "kitchen")
        } body: { client, _ in
            let settings = Shared(value: Settings())
            let desk = try Desk(client: client, settings: settings, search: await Search(quiet: .zero))
            let work = Task { await desk.run() }
            try await body(desk, client)
            work.cancel()
            await work.value
        }
    }

    private func shows(_ lines: [String], _ desk: Desk) async {
        #expect(await eventually { desk.body == lines }, "\(desk.body)")
    }

    @Test("the whole desk shows others' orders, numbers its orders, and rejects sold-out dishes")
    func desk() async throws {
        try await withDesk { desk, client in
            let menu = ["  Salad 6 €", "  Sole 19 €", "  Soup 5 €"]
            await shows(["Table 1"] + menu, desk)
            let other = try client.resolve(Kitchen.self, id: "kitchen")
            _ = try await other.order(dish: "Sole", table: 9)
            await shows(["Table 1"] + menu + ["  • 1. Sole for table 9"], desk)
            desk.order("Sole")
            let refused = "Not to be had: \(SoldOut(dish: "Sole"))"
            await shows(["Table 1"] + menu + ["  • 1. Sole for table 9", refused], desk)
            desk.$settings.withLock { $0.table = 4 }
            desk.order("Soup")
            try await desk.serve(1)
            let orders = ["  ✓ 1. Sole for table 9", "  • 2. Soup for table 4"]
            await shows(["Table 4"] + menu + orders + ["That is number 2."], desk)
            await desk.search.text.set("sa")
            await shows(["Table 4", "  Salad 6 €"] + orders + ["That is number 2."], desk)
        }
    }
}

/// The example as its README runs it.
@Suite(.timeLimit(.minutes(5))) struct KitchenProgramTests {
    private func find(_ wanted: String, in program: ChildProcess) async {
        while let line = await program.nextLine() { if line == wanted { return } }
        Issue.record("the program ended without the line: \(wanted)")
    }

    @Test("the program reads lines, draws their results, and persists its table")
    func program() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "kitchen-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "desk.json").path
        let program = try ChildProcess(ServeProcess.built("Kitchen"), [file])
        await find("  Soup 5 €", in: program)
        try program.send("table 3")
        await find("Table 3", in: program)
        try program.send("order Soup")
        await find("  • 1. Soup for table 3", in: program)
        try program.send("quit")
        #expect(await program.finish().status == 0)
        #expect(try Data(contentsOf: URL(filePath: file)) == Data(#"{"table":3}"#.utf8))
    }
}
