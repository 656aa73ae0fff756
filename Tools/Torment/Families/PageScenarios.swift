import Foundation

/// Requests for pages: invalid paths, slow headers, pipelines, and readers of large files that do not read.
enum PageScenarios {
    /// The pages of the attacked server.
    enum Site {
        /// Bytes of `/large.bin`: more than sockets hold.
        static let largeBytes = 12_000_000

        /// Creates the folder.
        static func make(at path: String) throws {
            let files = FileManager.default
            try files.createDirectory(atPath: path + "/folder/.hidden", withIntermediateDirectories: true)
            func write(_ name: String, _ content: Data) throws {
                try content.write(to: URL(fileURLWithPath: path + "/" + name))
            }
            try write("index.html", Data("<p>here</p>\n".utf8))
            try write("folder/index.html", Data("<p>there</p>\n".utf8))
            try write("folder/.hidden/secret", Data("secret".utf8))
            try write("small.js", Data("export {}\n".utf8))
            try write("piece.bin", Data(repeating: 7, count: 60 << 10))
            try write("more.bin", Data(repeating: 8, count: (60 << 10) + 1))
            try write("large.bin", Data(repeating: 9, count: largeBytes))
            try files.createSymbolicLink(atPath: path + "/out", withDestinationPath: "/etc")
            mkfifo(path + "/fifo", 0o600)
        }
    }

    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...8)
        return (0..<count).map { _ in Scenario(.plain, steps(&dice)) }
    }

    private static func steps(_ dice: inout Dice) -> [Step] {
        switch dice.int(1...10) {
        // Paths.
        case 1, 2:
            let requests = (0..<dice.int(1...20)).map { _ in request(path(&dice), &dice) }.joined()
            return ScenarioFragments.disturbed([.bytes(StepText(quoting: requests), count: 1)], &dice) + ending(&dice)
        // Pipelines, deep or followed by other input.
        case 3:
            let text = StepText(quoting: request(dice.pick(["/small.js", "/", "/more.bin", "/nothing"]), &dice))
            return ScenarioFragments.disturbed([.bytes(text, count: dice.size(upTo: 3_000))], &dice) + ending(&dice)
        case 4:
            let behind = StepText(
                quoting: dice.pick([
                    ScenarioRunner.head(version: 3), "GET /\r\n\r\n",
                    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
                    "\r\n\r\n", "\u{0}\u{1}\u{2}", "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\r\n",
                ]))
            let text = StepText(quoting: request(path(&dice), &dice))
            let steps: [Step] = [.bytes(text, count: dice.int(1...50)), .bytes(behind, count: 1)]
            return ScenarioFragments.disturbed(steps, &dice) + ending(&dice)
        // Readers of large files that do not read, or only a little, with one request or many.
        case 5, 6:
            let text = StepText(quoting: request("/large.bin", &dice))
            return [
                .receiveBuffer(dice.pick([1, 4_096, 65_536])), .bytes(text, count: dice.int(1...20)),
                dice.pick([.pause(milliseconds: dice.int(1...300)), .listen(milliseconds: dice.int(1...300))]),
            ] + ending(&dice)
        // Slow headers, also after a response.
        case 7:
            let first = dice.chance(50) ? request("/small.js", &dice) : ""
            let head = StepText(quoting: first + request("/", &dice))
            return [
                .hold, .bytes(head, count: 1),
                .stall(first.utf8.count + dice.int(0...30), milliseconds: dice.int(1...800)),
            ]
                + ending(&dice)
        // The local end closes its side.
        case 8:
            let text = StepText(quoting: request(dice.pick(["/large.bin", "/piece.bin", "/small.js"]), &dice))
            return [.bytes(text, count: dice.int(1...4)), .finish]
        // A WebSocket after pages, which must work.
        case 9:
            let text = StepText(quoting: request("/small.js", method: "HEAD", ""))
            return [
                .bytes(text, count: dice.int(1...30)), .listen(milliseconds: 50), .upgrade(version: 3),
                .say(Envelope.call("nothing()").text, count: dice.int(1...20)),
            ] + ScenarioFragments.ending(&dice)
        // Floods.
        default:
            let text = StepText(quoting: request(dice.pick(["/large.bin", "/", "/fifo", "/schema.json"]), &dice))
            return [.bytes(text, count: dice.size(upTo: 20_000))] + ending(&dice)
        }
    }

    private static func path(_ dice: inout Dice) -> String {
        let tricks = [
            "/", "/folder", "/folder/", "/small.js", "/piece.bin", "/more.bin", "/large.bin", "/nothing", "/fifo",
            "/out/passwd",
            "/schema.json", "/trebuchet.js", "/healthz", "/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
            "/..%2f..%2fetc/passwd",
            "/%5c..%5c", "/folder/.hidden/secret", "/small.js%00.html", "/%", "/%ff%fe", "//etc/passwd", "/./", "*",
            "http://localhost/small.js", "http://localhost",
            "/small.js?\(String(repeating: "q", count: dice.edge(upTo: 9_000)))",
            "/\(String(repeating: "a/", count: dice.edge(upTo: 4_500)))",
            "/\(String(repeating: "%2e", count: dice.edge(upTo: 2_800)))",
        ]
        return dice.pick(tricks)
    }

    private static func request(_ path: String, _ dice: inout Dice) -> String {
        let fields = dice.pick([
            "", "", "", "Connection: close\r\n", "Connection: keep-alive\r\n", "If-None-Match: *\r\n",
            "If-None-Match: \"a\", W/\"b\"\r\n",
            "Range: bytes=0-10\r\n", "Accept-Encoding: gzip\r\n", "Expect: 100-continue\r\n", "Content-Length: 0\r\n",
            "X-Forwarded-For: 192.0.2.1\r\n",
        ])
        return request(path, method: dice.pick(["GET", "GET", "GET", "GET", "HEAD", "PUT", "OPTIONS"]), fields)
    }

    private static func request(_ path: String, method: String, _ fields: String) -> String {
        "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n"
    }

    private static func ending(_ dice: inout Dice) -> [Step] {
        dice.pick([
            [], [.reset], [.close], [.finish], [.leave], [.leave], [.listen(milliseconds: dice.int(1...200)), .reset],
        ])
    }
}
