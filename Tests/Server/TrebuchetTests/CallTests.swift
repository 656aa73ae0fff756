import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) struct CallTests {
    /// Runs `body` with a calculator, a bank and a list.
    private func withActors(
        _ link: TestLink, _ body: (TrebuchetClient) async throws -> Void
    ) async throws {
        try await withTestServer(link: link) { server in
            server.register(genericTypes: ListState.self)
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
            await server.expose(Bank(actorSystem: server.actorSystem), as: "bank")
            await server.expose(ConcurrentList(actorSystem: server.actorSystem), as: "concurrent")
        } body: { client, _ in
            try await body(client)
        }
    }

    @Test("calls take any number of arguments and return nothing, values or optionals", arguments: TestLink.allCases)
    func shapes(link: TestLink) async throws {
        try await withActors(link) { client in
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            try await calculator.nothing()
            try await calculator.nothingLater()
            #expect(try await calculator.zero() == 0)
            #expect(try await calculator.same(.min) == .min)
            let joined = try await calculator.join(-1, b: 0.5, text: "\"ä\n\u{1F600}\\\u{0}", true, list: [1, 2])
            #expect(joined == "-1 0.5 \"ä\n\u{1F600}\\\u{0} true [1, 2]")
            #expect(try await calculator.join(0, b: 1, text: "", false, list: nil) == "0 1.0  false none")
            #expect(try await calculator.joinLater(3, text: "x") == "3 x")
            #expect(try await calculator.half(8) == 4)
            #expect(try await calculator.half(3) == nil)
            #expect(try await calculator.half(nil) == nil)
        }
    }

    @Test(
        "the caller fills in default arguments, and distributed properties are readable",
        arguments: TestLink.allCases)
    func defaultsAndProperties(link: TestLink) async throws {
        try await withActors(link) { client in
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            #expect(try await calculator.add(1) == 11)
            #expect(try await calculator.add(1, to: 2) == 3)
            #expect(try await calculator.answer == 42)
        }
    }

    @Test("generic methods accept library types and user types", arguments: TestLink.allCases)
    func generics(link: TestLink) async throws {
        try await withActors(link) { client in
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            #expect(try await calculator.echo(7) == 7)
            #expect(try await calculator.echo(["a", "b"]) == ["a", "b"])
            #expect(try await calculator.echo(ListState(items: ["x"])) == ListState(items: ["x"]))
            #expect(try await calculator.pairLater(1, "one") == Pair(first: 1, second: "one"))
        }
    }

    @Test("a type that the server has not registered is rejected, whatever its components")
    func unnamedTypes() async throws {
        try await withActors(.webSocket) { client in
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            for value in [[[1]], [[2]]] {
                let error = await #expect(throws: TrebuchetError.self) { try await calculator.echo(value) }
                #expect(error?.code == .invalidArguments)
                #expect(error?.message.contains("register(genericTypes:)") == true)
                #expect(
                    error?.message.contains("'Swift.Array<Swift.Array<Swift.Int>>'") == true, "\(error?.message ?? "")")
            }
        }
    }

    @Test(
        "an error declared with throws(…) arrives with its type, from sync and async methods",
        arguments: TestLink.allCases)
    func typedThrows(link: TestLink) async throws {
        try await withActors(link) { client in
            let bank = try client.resolve(Bank.self, id: "bank")
            #expect(try await bank.withdraw(40) == 60)
            await #expect(throws: BankError.insufficient(missing: 20)) { try await bank.withdraw(120) }
            await #expect(throws: BankError.insufficient(missing: 1)) { try await bank.withdrawLater(101) }
        }
    }

    @Test("a registered Codable error arrives with its type", arguments: TestLink.allCases)
    func registeredErrors(link: TestLink) async throws {
        try await withActors(link) { client in
            let bank = try client.resolve(Bank.self, id: "bank")
            let unknown = await #expect(throws: TrebuchetError.self) { try await bank.close() }
            #expect(unknown?.code == .application)
            #expect(unknown?.type == "TrebuchetTests.Closed")
            #expect(unknown?.message.contains("client.register(errors: TrebuchetTests.Closed.self)") == true)
            #expect(unknown?.data.map { String(decoding: $0, as: UTF8.self) } == #"{"reason":"holiday"}"#)
            client.register(errors: Closed.self)
            await #expect(throws: Closed(reason: "holiday")) { try await bank.close() }
        }
    }

    @Test("a method of an actor without @Trebuchet is rejected where it is called", arguments: TestLink.allCases)
    func plainActor(link: TestLink) async throws {
        try await withActors(link) { client in
            let plain = try client.resolve(Plain.self, id: "calculator")
            let error = await #expect(throws: TrebuchetError.self) { try await plain.nothing() }
            #expect(error?.code == .methodNotFound)
            #expect(error?.message.contains("'Plain.nothing()'") == true)
            #expect(error?.message.contains("mark the actor @Trebuchet") == true)
        }
    }

    @Test("an actor on the global pool is called, is observed and reads its own writes", arguments: TestLink.allCases)
    func concurrentActor(link: TestLink) async throws {
        try await withActors(link) { client in
            let list = try client.resolve(ConcurrentList.self, id: "concurrent")
            var states = await list.observeState().makeAsyncIterator()
            #expect(await states.next()?.items == [])
            #expect(try await list.add(title: "a") == 1)
            #expect(await states.next()?.items == ["a"])
            #expect(try await list.addLater(title: "b") == 2)
            #expect(await states.next()?.items == ["a", "b"])
        }
    }

    @Test("a thousand concurrent calls all receive their own responses", arguments: TestLink.allCases)
    func manyCalls(link: TestLink) async throws {
        try await withActors(link) { client in
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            let answers = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
                for number in 0..<1_000 { group.addTask { (number, try await calculator.same(number)) } }
                return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
            #expect(answers.count == 1_000)
            #expect(answers.allSatisfy { $0 == $1 })
        }
    }

    @Test("a call through a disconnected client fails with a clear error")
    func notConnected() async throws {
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: 1))
        let calculator = try client.resolve(Calculator.self, id: "calculator")
        let error = await #expect(throws: TrebuchetError.self) { try await calculator.nothing() }
        #expect(error?.code == .unavailable)
        #expect(error?.message.contains("connect()") == true)
    }
}
