import ClientGenerator
import Foundation
import Testing

/// Actors, their methods, states and events.
@Suite struct ActorTests {
    static let source = """
        import Trebuchet

        /// A game.
        /// - Note: of chess.
        @Trebuchet(executor: .concurrent)
        public distributed actor Game {
            public enum Failure: Error, Codable { case over(at: Date) }
            @StreamedState(persisted: true) public var board = Board()
            /// What happens.
            @StreamedEvents public var moves: Move
            private var secret = 0
            @StreamedState private var hidden = 0

            /** Makes a move. */
            @Idempotent
            public distributed func move(_ from: Int, to: Int, options: [String]?) async throws(Failure) -> Move { fatalError() }
            distributed func add(title: String) {}
            distributed func add(text: String, at date: Date) throws {}
            distributed func add() throws -> Void {}
            distributed func board(of number: Int) -> Board { board }
            distributed func then(_ a: Int, _: Int, for a: Int, `in` class: Int) -> Self { self }
            distributed func `switch`() throws(any Error) {}
            distributed func other(_ game: Game?) async -> [Game] { [] }
            distributed var count: Int { get async throws { 1 } }
            func local() -> Never { fatalError() }
            private distributed func inside() {}
            // trebuchet: skip
            distributed func skipped(_ value: any Error) {}
            distributed func 🐶(_ 🐱: Int) {}
        }
        public struct Board: Codable, Sendable { var cells: [Int] = [] }
        @Wire public struct Move: Sendable { var at: Date }

        @Resolvable
        protocol Gaming: DistributedActor where ActorSystem == TrebuchetActorSystem {
            distributed func count() -> Int
        }
        extension Gaming {
            /// The board.
            nonisolated var observeBoard: StateObservation<Self, Board> { observation("observeBoard") }
            nonisolated var happenings: EventObservation<Self, Move> {
                observation("observeMoves")
            }
        }
        // trebuchet: skip
        @Trebuchet distributed actor Left<T: Codable> {}
        distributed actor Plain { distributed func a() {} }
        """

    static let expected = #"""
        /**
         * A game.
         * - Note: of chess.
         */
        export const Game = /*#__PURE__*/ actorType<{
            methods: {
                /** Makes a move. */
                move(from: number, to: number, options: string[] | null, options_?: CallOptions): Call<Move, GameFailure>
                addTitle(title: string, options?: CallOptions): Call<void>
                addTextAt(text: string, date: Date, options?: CallOptions): Call<void>
                add(options?: CallOptions): Call<void>
                boardOf(number: number, options?: CallOptions): Call<Board>
                then_(a: number, argument1: number, a_: number, class_: number, options?: CallOptions): Call<GameReference>
                switch(options?: CallOptions): Call<void>
                other(game: GameReference | null, options?: CallOptions): Call<GameReference[]>
                count(options?: CallOptions): Call<number>
                "🐶"(argument0: number, options?: CallOptions): Call<void>
            }
            states: {
                board: Board
            }
            events: {
                /** What happens. */
                moves: Move
            }
        }>({
            name: "Game",
            methods: {
                move: { target: "move(_:to:options:)", result: MoveCodec, errors: { Failure: GameFailureCodec }, idempotent: true },
                addTitle: { target: "add(title:)" },
                addTextAt: { target: "add(text:at:)", arguments: [undefined, date] },
                add: { target: "add()" },
                boardOf: { target: "board(of:)" },
                then_: { target: "then(_:_:for:in:)" },
                switch: { target: "switch()" },
                other: { target: "other(_:)" },
                count: { target: "count()" },
                "🐶": { target: "🐶(_:)" },
            },
            states: {
                board: { target: "observeBoard" },
            },
            events: {
                moves: { target: "observeMoves", value: MoveCodec },
            },
        })

        export const Gaming = /*#__PURE__*/ actorType<{
            methods: {
                count(options?: CallOptions): Call<number>
            }
            states: {
                /** The board. */
                board: Board
            }
            events: {
                moves: Move
            }
        }>({
            name: "Gaming",
            methods: {
                count: { target: "count()" },
            },
            states: {
                board: { target: "observeBoard" },
            },
            events: {
                moves: { target: "observeMoves", value: MoveCodec },
            },
        })

        """#

    @Test("an actor and a protocol are generated with everything that clients may use")
    func actors() throws {
        let generation = generated(Self.source)
        #expect(generation.messages == [])
        let text = generation.typeScript
        let start = try #require(text.range(of: "/**\n * A game."))
        let difference = TextDifference(String(text[start.lowerBound...]), expected: Self.expected)
        #expect(difference == nil)
    }

    @Test("the output is independent of the order of files, and names nothing of the machine")
    func stable() {
        let files = ["Sources/App/A.swift": Self.source, "Sources/App/B.swift": echo("Z", "struct Z: Codable {}")]
        let one = generated(files).typeScript
        for _ in 0..<4 { #expect(generated(files).typeScript == one) }
        #expect(!one.contains("\r"))
        #expect(one.hasSuffix("})\n"))
        #expect(one.hasPrefix("// trebuchet generate typescript\n"))
    }

    @Test("wrong calls do not compile, right ones do", .enabled(if: Run.exists("tsc")))
    func wrongCalls() throws {
        let use = """
            import { connect } from "./trebuchet.js"
            import { Game, Gaming } from "./game.js"
            import type { Board, GameFailure, Move } from "./game.js"

            const client = connect("ws://127.0.0.1:8080")
            const game = client.actor(Game, "game")
            export async function right() {
                const move: Move = await game.move(1, 2, null, { timeout: 1_000 })
                const outcome = await game.move(1, 2, ["a"]).result()
                if (!outcome.ok) {
                    const thrown: GameFailure | undefined = outcome.error.data
                    if (thrown && "over" in thrown) thrown.over.at.getTime()
                }
                const board: Board | undefined = game.board.getSnapshot()
                for await (const each of game.moves) each.at.getTime()
                const cells: number[] | undefined = game.board.at("/cells").getSnapshot()
                const other = client.actor(Gaming, (await game.other(null))[0]!)
                const count: number = await other.count()
                await game["🐶"](count)
                return [move, board, cells]
            }
            export async function wrong() {
                // @ts-expect-error: the second number is missing
                await game.move(1)
                // @ts-expect-error: a text is no number
                await game.move("1", 2, null)
                // @ts-expect-error: no such method
                await game.inside()
                // @ts-expect-error: the result is no text
                const text: string = await game.count()
                // @ts-expect-error: states are not called
                await game.board()
                // @ts-expect-error: an event is no state
                game.moves.getSnapshot()
                // @ts-expect-error: a board has no such member
                game.board.getSnapshot()?.rows
                // @ts-expect-error: a text is no name of a game
                await game.other("game")
                // @ts-expect-error: no such option
                await game.add({ time: 1 })
                return text
            }
            """
        try withTemporaryFolder { folder in
            try compile([("game.ts", generated(Self.source).typeScript), ("use.ts", use)], in: folder)
        }
    }

    @Test("the schema has the same content as JSON")
    func schema() throws {
        let text = generated(Self.source).schema
        let schema = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        #expect(schema["format"] as? String == "trebuchet-schema")
        #expect(schema["version"] as? Int == 1)
        let actors = try #require(schema["actors"] as? [[String: Any]])
        #expect(actors.map { $0["name"] as? String } == ["Game", "Gaming"])
        #expect(actors.map { $0["kind"] as? String } == ["actor", "protocol"])
        let methods = try #require(actors[0]["methods"] as? [[String: Any]])
        #expect(methods.first?["target"] as? String == "move(_:to:options:)")
        #expect(methods.first?["idempotent"] as? Bool == true)
        let types = try #require(schema["types"] as? [[String: Any]])
        #expect(types.map { $0["name"] as? String } == ["Board", "GameFailure", "Move"])
        #expect(types.map { $0["kind"] as? String } == ["struct", "union", "struct"])
        #expect(text.contains(#""parameters": [{ "name": "game", "type": { "optional": { "reference": "Game" } } }]"#))
    }
}

extension ActorTests {
    @Test(
        "methods of one name are distinguished by labels, then by parameters",
        arguments: [
            (["add(_ a: Int)"], ["add"]),
            (["add(_ amount: Int)", "add(title: String)"], ["add", "addTitle"]),
            (["add()", "add(_ count: Int)", "add(_ text: String, at index: Int)"], ["add", "addCount", "addAt"]),
            (["state(_ count: Int)", "state(of name: String)"], ["stateCount", "stateOf"]),
        ])
    func names(methods: [String], names: [String]) {
        let source = methods.map { "distributed func \($0) {}" }.joined(separator: "\n")
        let generation = generated(
            "@Trebuchet distributed actor A {\n@StreamedState var state: Int = 0\n\(source)\n}")
        #expect(generation.messages == [])
        #expect(generation.model.actors[0].methods.map(\.name) == names)
    }
}

extension ActorTests {
    @Test("an actor's own error type is found, also under the name of a language type")
    func ownError() {
        let generation = generated(
            """
            @Trebuchet distributed actor A {
                enum Error: Swift.Error, Codable { case over(at: Date) }
                distributed func a() throws(Error) {}
                distributed func b() throws(Swift.Error) {}
            }
            """)
        #expect(generation.messages == [])
        #expect(generation.typeScript.contains("a(options?: CallOptions): Call<void, AError>"))
        #expect(generation.typeScript.contains("errors: { Error: AErrorCodec }"))
        #expect(generation.typeScript.contains("b(options?: CallOptions): Call<void>"))
    }

    @Test("Windows line ends do not change the output")
    func lineEnds() {
        let source =
            "/**\n * One\n * two */\n@Trebuchet distributed actor A {\n    /// Three\n    distributed func a() {}\n}\n"
        let text = generated(source.replacing("\n", with: "\r\n")).typeScript
        #expect(text == generated(source).typeScript)
        #expect(text.contains(" * One\n * two\n"))
    }

    @Test("invalid Swift is reported")
    func misread() {
        let generation = generated(
            "@Trebuchet distributed actor A {\n    distributed func a() {}\n    distributed func b( {}\n}")
        #expect(generation.problems.contains { $0.severity == .warning && $0.location?.line == 3 })
        #expect(generation.typeScript.contains("a(options?: CallOptions): Call<void>"))
    }
}
