import Commands
import Foundation
import Glibc
import TestSupport
import Testing

@testable import TrebuchetCLI

/// `serve --inspector`, and the commands `inspect` and `top` that use it.
@Suite(.timeLimit(.minutes(5))) struct InspectCommandTests {
    private struct DidNotStart: Error {}

    /// Runs `body` with a server and the links that it has printed.
    private func withServer(_ body: (_ url: String, _ link: String) async throws -> Void) async throws {
        let process = try ChildProcess(
            ServeProcess.tool, ["serve", "--examples", "--port", "0", "--inspector"], error: .merged)
        var (url, link) = ("", "")
        while let line = await process.nextLine() {
            if let found = line.firstMatch(of: /ws:\/\/\S+/), url.isEmpty { url = String(found.0) }
            if let found = line.firstMatch(of: /^inspector: (\S+)/) { link = String(found.1) }
            if line.hasPrefix("and: ") { break }
        }
        guard !url.isEmpty, !link.isEmpty else { throw DidNotStart() }
        try await body(url, link)
        process.signal(SIGTERM)
        #expect(await process.finish().status == 0)
    }

    private func trebuchet(_ arguments: [String]) async throws -> ChildProcess.Outcome {
        try await ChildProcess(ServeProcess.tool, arguments, error: .captured).finish()
    }

    @Test("a server's state and activity are printed as tables and as JSON, by the link or by address and token")
    func inspect() async throws {
        try await withServer { url, link in
            let parts = link.split(separator: "#token=").map(String.init)
            func inspect(_ words: String..., by link: [String]? = nil) async throws -> String {
                let outcome = try await trebuchet(
                    ["inspect"] + words + (link ?? ["--url", parts[0], "--token", parts[1]]))
                #expect(outcome.status == 0, "\(words): \(outcome)")
                return outcome.output
            }
            let actors = try await inspect("actors", by: ["--url", link])
            #expect(actors.contains("todos") && actors.contains("4 actors"))
            #expect(try await inspect("actors", "--search", "count").contains("1 of 4 actors"))
            #expect(
                try await inspect("connections")
                    == "CONNECTION  ADDRESS  PRINCIPAL  PROTOCOL  AGE  STREAMS  CALLS  BUFFERED  LAST ERROR\n0 connections\n"
            )
            #expect(try await inspect("calls").split(separator: "\n").count == 1)
            _ = try await inspect("actor", "counter")
            #expect(try await trebuchet(["call", "--url", url, "counter", "add(_:)", "42"]).status == 0)
            #expect(try await inspect("calls").contains("add(_:)"))
            let actor = try await inspect("actor", "counter")
            #expect(actor.contains(#"subscribers: {"count":42}"#), "\(actor)")
            #expect(actor.contains("add(_:), anonymous, connection "), "\(actor)")
            #expect(try await inspect("store").contains("states are in memory only"))
            #expect(try await inspect("nodes").contains("not a node of a cluster"))
            #expect(try await inspect("overview").contains("actors       4, "))
            let json = try await inspect("overview", "--json")
            let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
            #expect(object?["actors"] as? Int == 4)
            let follower = try ChildProcess(
                ServeProcess.tool, ["inspect", "calls", "--follow", "--url", link], error: .captured)
            while let line = await follower.nextLine(), !line.contains("add(_:)") {}
            #expect(try await trebuchet(["call", "--url", url, "counter", "increment()"]).status == 0)
            var line = await follower.nextLine()
            while let text = line, !text.contains("increment()") { line = await follower.nextLine() }
            #expect(line?.contains("counter") == true)
            // Other events in between, such as opened and closed connections, do not count as missed calls.
            #expect(try await trebuchet(["call", "--url", url, "counter", "add(_:)", "7"]).status == 0)
            while let text = line, !text.contains("add(_:)") { line = await follower.nextLine() }
            follower.signal(SIGKILL)
            let followed = await follower.finish()
            #expect(!followed.error.contains("too fast to be shown"), "\(followed.error)")
        }
    }

    @Test("client-supplied names never reach the terminal as control sequences, not even as JSON")
    func terminals() async throws {
        try await withServer { url, link in
            _ = try await trebuchet(["inspect", "calls", "--url", link])
            let refused = try await trebuchet(["call", "--url", url, "counters\u{9B}31m\u{202E}", "f\u{9B}2J()"])
            #expect(refused.status != 0 && !refused.error.contains("\u{9B}"))
            for words in [["calls", "--json"], ["calls"], ["logs", "--json"], ["logs"]] {
                let shown = try await trebuchet(["inspect"] + words + ["--url", link])
                #expect(shown.status == 0 && shown.output.contains("counters"), "\(words): \(shown)")
                #expect(!shown.output.unicodeScalars.contains { $0 == "\u{9B}" || $0 == "\u{202E}" }, "\(words)")
            }
        }
    }

    @Test("the log of an actor, of a connection or of all is printed and followed, while the server's log is silent")
    func logs() async throws {
        try await withServer { url, link in
            func logs(_ words: String...) async throws -> [Substring] {
                let outcome = try await trebuchet(["inspect", "logs"] + words + ["--url", link])
                #expect(outcome.status == 0, "\(words): \(outcome)")
                return outcome.output.split(separator: "\n")
            }
            #expect(try await logs() == [])
            for actor in ["counter", "todos"] {
                let answer = try await trebuchet(
                    ["call", "--url", url, actor]
                        + (actor == "todos" ? ["addTodo(title:)", "\"a b\""] : ["add(_:)", "42"]))
                #expect(answer.status == 0, "\(answer)")
            }
            let lines = try await logs("counter")
            let call = try #require(lines.first)
            #expect(lines.count == 1 && call.contains(" type=TrebuchetCLI.Counter actor=counter method="), "\(lines)")
            #expect(call.contains("Z debug call ended call=") && call.contains(" method=add(_:) "), "\(call)")
            let connection = try #require(call.firstMatch(of: #/ connection=(\d+) /#)?.1)
            let ofConnection = try await logs(String(connection))
            #expect(ofConnection.contains(call) && ofConnection.count > 1, "\(ofConnection)")
            #expect(ofConnection.allSatisfy { $0.contains(" connection=\(connection)") }, "\(ofConnection)")
            let all = try await logs()
            #expect(all.contains(call) && all.contains { $0.contains(" actor=todos ") } && all.count > lines.count)
            #expect(try await logs("--actor", String(connection)) == [])
            #expect(try await logs("--limit", "1").count == 1)
            let object = try JSONSerialization.jsonObject(with: Data(try await logs("counter", "--json")[0].utf8))
            #expect(((object as? [String: Any])?["fields"] as? [String: Any])?["actor"] as? String == "counter")
            let follower = try ChildProcess(
                ServeProcess.tool, ["inspect", "logs", "counter", "--follow", "--url", link], error: .captured)
            while let line = await follower.nextLine(), !line.contains("add(_:)") {}
            #expect(try await trebuchet(["call", "--url", url, "counter", "increment()"]).status == 0)
            let next = await follower.nextLine()
            #expect(next?.contains(" method=increment() ") == true, "\(next ?? "-")")
            follower.signal(SIGKILL)
            _ = await follower.finish()
            let refusal = try await trebuchet(["inspect", "logs", "a", "--actor", "b", "--url", link])
            #expect(refusal.status != 0 && refusal.error.contains("one actor or one connection"), "\(refusal)")
            let help = try await trebuchet(["inspect", "logs", "--help"])
            #expect(help.status == 0 && help.output.contains("--follow") && help.output.contains("[NAME|CONNECTION]"))
        }
    }

    @Test("a wrong token, an unknown actor and an invalid address end with a reason")
    func refused() async throws {
        try await withServer { _, link in
            let url = String(link.prefix { $0 != "#" })
            for (arguments, reason) in [
                (["overview", "--url", url, "--token", "wrong"], "401"),
                (["actor", "nobody", "--url", link], "404"),
                (["actors", "--url", url], "requires a token"),
                (["actors"], "the inspector is missing"),
                (["actors", "--url", "http://192.0.2.1:1/#token=a"], "http is allowed only to this machine"),
            ] {
                let outcome = try await trebuchet(["inspect"] + arguments)
                #expect(outcome.status != 0 && outcome.error.contains(reason), "\(arguments): \(outcome)")
            }
        }
    }

    @Test("top prints once, or repeatedly until it is interrupted, and exits with 0")
    func top() async throws {
        try await withServer { _, link in
            let once = try await trebuchet(["top", "--once", "--interval", "0.1", "--url", link])
            #expect(once.status == 0 && once.output.hasPrefix("serving, up "), "\(once)")
            #expect(once.output.contains("% busy") && !once.output.contains("\u{1B}"))
            let top = try ChildProcess(
                ServeProcess.tool, ["top", "--interval", "0.1", "--url", link], error: .captured)
            var seen = 0
            while seen < 2, let line = await top.nextLine() { if line.hasPrefix("serving, up ") { seen += 1 } }
            top.signal(SIGINT)
            #expect(seen == 2)
            #expect(await top.finish().status == 0)
        }
    }

    @Test("rates cover the time between two snapshots, and latencies the calls in it")
    func metrics() throws {
        func shown(time: Double, calls: [Int], busy: Double) throws -> LenientJSON {
            let text = """
                {"time":\(time),"status":"serving","ready":true,"connectionsOpened":\(Int(time)),
                 "process":{"started":940,"processorSeconds":\(busy)},"reactors":[{"name":"r1","busySeconds":\(busy)}],
                 "calls":{"answered":\(calls.reduce(0, +)),"bounds":[5e-05,0.0001],"buckets":\(calls)},
                 "methods":[{"type":"A\\u001b[2J","method":"b()","calls":\(calls.reduce(0, +)),"seconds":\(busy)}]}
                """
            return try #require(LenientJSON(Array(text.utf8)))
        }
        let (old, new) = (
            try shown(time: 1_000, calls: [100, 0, 0], busy: 1), try shown(time: 1_002, calls: [150, 49, 1], busy: 1.5)
        )
        let lines = TopMetricsView.lines(of: new, since: old)
        #expect(lines[0] == "serving, up 1 min")
        #expect(
            lines.contains { $0 == "calls        50/s; 0 active, 0 waiting; median ≤ 50 µs, 99 % ≤ 100 µs" }, "\(lines)"
        )
        #expect(lines.contains { $0.contains("r1: 25 % busy") })
        #expect(lines.contains { $0.contains("25 % of a core") })
        #expect(lines.last?.hasSuffix("50       5 ms") == true, "\(lines)")
        #expect(!lines.joined().contains("\u{1B}"))
        #expect(TopMetricsView.lines(of: new).contains { $0.hasPrefix("calls        200 total; ") })
        #expect(
            TopMetricsView.bytes(1_536) == "1.5 KiB" && TopMetricsView.time(2.5) == "2.5 s"
                && TopMetricsView.short(1234.5) == "1235")
    }

    @Test("an optional value may be omitted, before an option and at the end")
    func optionalValue() throws {
        let spec = CommandSpec(
            name: "x", summary: "", options: [OptionSpec("--inspector", "[PORT]", ""), OptionSpec("--b", nil, "")],
            run: { _ in })
        for (words, wanted) in [
            (["--inspector"], ""), (["--inspector", "--b"], ""), (["--inspector", "80"], "80"),
            (["--inspector=80", "--b"], "80"),
        ] {
            #expect(try ParsedArguments(words, for: spec).string("--inspector") == wanted)
        }
        #expect(try ParsedArguments(["--b"], for: spec).string("--inspector") == nil)
    }
}
