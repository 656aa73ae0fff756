@testable import ChatWeb
import Foundation
import FoundationNetworking
import GameModel
import KitchenModel
import TestSupport
import Testing
import TodoModel
@testable import TodosWeb
import Trebuchet
import TrebuchetInspector
import TrebuchetCLI
import TrebuchetTesting

/// The inspector's "Copy as test" output for each example's calls equals the files beside this one, which are compiled and run.
@Suite(.timeLimit(.minutes(5))) struct RecordingTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent()

    /// Precedes the page's output, so that it is not reformatted.
    private static let asWritten = "// swift-format-ignore-file\n"

    /// An actor, and calls to it.
    struct Example: Sendable, CustomTestStringConvertible {
        let type: String
        let name: String
        let calls: [Call]
        var looks = InspectionTime.between
        let expose: @Sendable (TrebuchetServer, String) async -> Void

        var testDescription: String { "\(type) \(looks)" }
        var file: String {
            let looks = looks == .between ? "" : "\(looks)".capitalized
            return "Copied" + type.replacing(".", with: "") + looks + "Tests.swift"
        }
    }

    /// The time of the inspections.
    enum InspectionTime {
        /// After each call.
        case between
        /// Before the first of many and after the last.
        case around
        /// Only after all have ended; other actors were inspected meanwhile.
        case late
    }

    /// A method with its JSON arguments. `$` in them is the first identity that occurs in a state.
    typealias Call = (method: String, arguments: [String])

    static let examples = [
        Example(
            type: "TrebuchetCLI.Counter", name: "counter",
            calls: [("increment()", []), ("add(_:)", ["-5"]), ("reset()", []), ("add(_:)", ["42"])]
        ) { server, name in
            await server.expose(Counter(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "TrebuchetCLI.PersistedCounter", name: "counters/42",
            // The second has more digits than a double holds.
            calls: [("add(_:)", ["1"]), ("add(_:)", ["9007199254740993"]), ("add(_:)", ["-9007199254740952"])]
        ) { server, name in
            await server.expose(PersistedCounter(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "TrebuchetCLI.Counter", name: "counters/around",
            calls: Array(repeating: ("increment()", []), count: 300), looks: .around
        ) { server, name in
            await server.expose(Counter(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "TrebuchetCLI.GameServer", name: "games/around",
            calls: (0..<300).map { ("join(player:)", ["\"player \($0)\""]) }, looks: .around
        ) { server, name in
            await server.expose(GameServer(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "TrebuchetCLI.Counter", name: "counters/late", calls: [("increment()", []), ("add(_:)", ["5"])],
            looks: .late
        ) { server, name in
            await server.expose(Counter(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "TrebuchetCLI.GameServer", name: "game",
            calls: [
                ("join(player:)", [##""ada \"1\" \\#(2)""##]), ("join(player:)", [#""ada""#]), ("advanceLevel()", []),
                ("cheat(score:)", ["1000"]), ("join(player:)", ["7"]),
            ]
        ) { server, name in
            await server.expose(GameServer(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "TrebuchetCLI.TodoList", name: "todos",
            calls: [
                ("addTodo(title:)", [#""Milk""#]), ("addTodo(title:)", [#""Bread""#]), ("toggleTodo(id:)", [#""$""#]),
                ("removeTodo(id:)", [#""00000000-0000-0000-0000-000000000001""#]), ("removeTodo(id:)", [#""$""#]),
                ("removeTodo(id:)", [#""$""#]),
            ]
        ) { server, name in
            await server.expose(TrebuchetCLI.TodoList(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "TodoModel.TodoList", name: "shopping",
            calls: [
                ("add(title:)", [#""Milk""#]), ("add(title:)", [#""Bread""#]), ("finish(number:)", ["2"]),
                ("finish(number:)", ["3"]),
            ]
        ) { server, name in
            await server.expose(TodoModel.TodoList(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "TodosWeb.Todos", name: "web-todos",
            calls: [
                ("addTodo(title:)", [#""Milk""#]), ("toggleTodo(id:)", [#""$""#]), ("addTodo(title:)", [#""Bread""#]),
            ]
        ) { server, name in
            await server.expose(Todos(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "ChatWeb.Chat", name: "chat",
            calls: [
                ("enter(id:name:)", [#""852A860E-BCCF-4558-9514-30FB457D8488""#, #""Ada""#]),
                ("point(id:to:)", [#""852A860E-BCCF-4558-9514-30FB457D8488""#, #"{"x":0.25,"y":0.5}"#]),
                ("say(_:id:name:)", [#""Hello""#, #""852A860E-BCCF-4558-9514-30FB457D8488""#, #""Ada""#]),
                ("say(_:id:name:)", [#"" ""#, #""852A860E-BCCF-4558-9514-30FB457D8488""#, #""Ada""#]),
                ("point(id:to:)", [#""852A860E-BCCF-4558-9514-30FB457D8488""#, "null"]),
            ]
        ) { server, name in
            await server.expose(Chat(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "GameModel.Match", name: "matches/first",
            calls: [
                ("join(name:)", [#""ada""#]), ("join(name:)", [#""ada""#]), ("turn(name:to:)", [#""ada""#, #""up""#]),
                ("turn(name:to:)", [#""bob""#, #""down""#]),
            ]
        ) { server, name in
            await server.expose(Match(actorSystem: server.actorSystem), as: name)
        },
        Example(
            type: "KitchenModel.Kitchen", name: "kitchen",
            calls: [
                ("menu()", []), ("order(dish:table:)", [#""Sole""#, "4"]), ("order(dish:table:)", [#""Sole""#, "5"]),
                ("serve(number:)", ["1"]),
            ]
        ) { server, name in
            await server.expose(Kitchen(actorSystem: server.actorSystem), as: name)
        },
    ]

    @Test("the calls of each example become the test that is compiled and run here", arguments: examples)
    func copied(example: Example) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "recorded-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = try await record(example).enumerated().map { number, shown in
            let file = folder.appending(path: "\(number).json")
            try shown.write(to: file)
            return file.path
        }
        let script = packageRoot.appending(path: "Web/test/copied.mjs").path
        let written = try await ChildProcess("/usr/bin/env", ["node", script] + files, error: .captured).finish()
        try #require(written.status == 0, "\(written)")
        let file = Self.root.appending(path: example.file)
        // `TREBUCHET_COPY=1 swift test --filter RecordingTests` writes them again.
        if ProcessInfo.processInfo.environment["TREBUCHET_COPY"] == "1" {
            try (Self.asWritten + written.output).write(to: file, atomically: true, encoding: .utf8)
        }
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(Self.withoutChance(Self.asWritten + written.output) == Self.withoutChance(text))
        // The state before the calls is known, unless it was not inspected.
        #expect(text.contains("matches(") == (example.looks != .late))
        #expect(text.contains("try recorded(#") == (example.looks != .late))
    }

    /// Makes the calls during inspections, and returns the output before and after them.
    private func record(_ example: Example) async throws -> [Data] {
        try await withTestServer { server in
            await example.expose(server, example.name)
        } body: { client, server in
            let inspector = try server.openInspector()
            let name = example.name.replacing("/", with: "%2F")
            var request = URLRequest(
                url: URL(string: "\(inspector.url)inspect/actors/\(name)?versions=200&earlier=1")!)
            request.setValue("Bearer \(inspector.token)", forHTTPHeaderField: "Authorization")
            let look = request
            // The inspector may end a connection just when the session reuses it.
            func get(_ request: URLRequest) async throws -> Data {
                var found: Data?
                _ = await eventually {
                    found = try? await URLSession.shared.data(for: request).0
                    return found != nil
                }
                return try #require(found)
            }
            func shown() async throws -> (data: Data, json: [String: Any]) {
                let data = try await get(look)
                return (data, try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any]))
            }
            func isRecorded() async throws -> Bool {
                let json = try await shown().json
                let versions = (json["recorded"] as? [String: Any])?["versions"] as? [[String: Any]] ?? []
                return versions.allSatisfy { $0["patch"] is [Any] || $0["value"] != nil && !($0["value"] is NSNull) }
            }
            guard example.looks == .between else {
                // One at a time, and no more at once than are recorded.
                var calls = look
                calls.url = URL(string: "\(inspector.url)inspect/calls?limit=1")
                // The inspector drops an actor half a minute after the last request for it, which a busy machine may need for all these
                // calls.
                var renewal = look
                renewal.url = URL(string: "\(inspector.url)inspect/actors/\(name)?versions=1")
                let before = example.looks == .late ? nil : try await shown().data
                for (number, call) in example.calls.enumerated() {
                    if number % 5 == 4 { _ = try await get(renewal) }
                    _ = try await get(calls)
                    let arguments = call.arguments.map { Array($0.utf8) }
                    _ = try await client.call(actor: example.name, target: call.method, arguments: arguments)
                }
                #expect(
                    try await eventually {
                        let made = try await shown().json["calls"] as? [Any] ?? []
                        guard made.count == min(200, example.calls.count) else { return false }
                        return try await isRecorded()
                    })
                return try await [before, shown().data].compactMap { $0 }
            }
            #expect(
                try await eventually {
                    let states = try await shown().json["states"] as? [[String: Any]] ?? []
                    return states.allSatisfy {
                        $0["value"] is [String: Any] || $0["value"] is [Any] || $0["value"] is Int
                    }
                })
            let before = try await shown().data
            for (number, call) in example.calls.enumerated() {
                let text = String(decoding: try await shown().data, as: UTF8.self)
                let made = text.firstMatch(of: /"id":"([0-9A-F-]{36})"/).map { String($0.1) } ?? ""
                let arguments = call.arguments.map { Array($0.replacing("$", with: made).utf8) }
                _ = try? await client.call(actor: example.name, target: call.method, arguments: arguments)
                // One at a time: otherwise several make one version.
                #expect(
                    try await eventually {
                        let calls = try await shown().json["calls"] as? [Any]
                        guard calls?.count == number + 1 else { return false }
                        return try await isRecorded()
                    })
            }
            return [before, try await shown().data]
        }
    }

    /// Replaces identities and dates, which differ each time.
    private static func withoutChance(_ text: String) -> String {
        var names: [String: String] = [:]
        let named = text.replacing(/[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/) { found in
            let name = names[String(found.output.0)] ?? "identity \(names.count)"
            names[String(found.output.0)] = name
            return name
        }
        return named.replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/, with: "a moment")
    }
}
