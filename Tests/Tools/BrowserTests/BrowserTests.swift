import Foundation
import TestSupport
import Testing

/// The start page, the web examples and the services in two Chromium windows. `Web/test/browser` drives the browser; this suite builds,
/// starts and checks it.
@Suite(.timeLimit(.minutes(5))) struct BrowserTests {
    @Test(
        "each window shows the other's input, also after a killed server and a lost network",
        .enabled(if: Browser.path != nil, "there is no Chromium; scripts/bootstrap --web installs it"))
    func windows() async throws {
        let built = try await ChildProcess(Example.chat.file("build").path, [], error: .merged).finish()
        try #require(built.status == 0, "\(built.output)")
        try await run(["browser", "services"])
    }

    @Test(
        "the inspector page shows the calls of a version, its receivers and the reasons of rejections",
        .enabled(if: Browser.path != nil, "there is no Chromium; scripts/bootstrap --web installs it"))
    func inspector() async throws { try await run(["inspector"]) }

    @Test(
        "the page of scripts/cluster continues with another node after a kill, without loss or duplicates",
        .enabled(if: Browser.path != nil, "there is no Chromium; scripts/bootstrap --web installs it"),
        .enabled(
            if: ["/usr/sbin/nginx", "/usr/bin/redis-server"].allSatisfy(FileManager.default.isExecutableFile),
            "there is no nginx or no redis-server: scripts/bootstrap --proxy --redis"))
    func cluster() async throws { try await run(["cluster"]) }

    private func run(_ names: [String]) async throws {
        let tests = names.map { Example.root.appending(path: "Web/test/browser/\($0).test.mjs").path }
        let programs = URL(filePath: ServeProcess.tool).deletingLastPathComponent().path
        let outcome = try await ChildProcess(
            "/usr/bin/env",
            [
                "TREBUCHET_BROWSER=\(Browser.path ?? "")", "TREBUCHET_PROGRAMS=\(programs)", "node", "--test",
            ] + tests,
            error: .merged
        ).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("# skipped 0"), "\(outcome.output)")
    }

    @Test("the chat's client equals the generator's output for its actor")
    func generated() async throws {
        // The file names the command that made it, so that command is used.
        let command = "generate typescript Sources --runtime trebuchet --output web/chat.ts --check"
        let outcome = try await ChildProcess(
            "/bin/bash", ["-c", "cd '\(Example.chat.file("").path)' && '\(ServeProcess.tool)' \(command)"],
            error: .merged
        ).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
    }
}

enum Browser {
    /// Debian's Chromium, or the one that `TREBUCHET_CHROMIUM` names; nil without one, or when it is disabled.
    static var path: String? {
        let environment = ProcessInfo.processInfo.environment
        if environment["TREBUCHET_NO_BROWSER"]?.isEmpty == false { return nil }
        let path = environment["TREBUCHET_CHROMIUM"] ?? "/usr/bin/chromium"
        return FileManager.default.isExecutableFile(atPath: path) ? path : nil
    }
}

/// A folder in `Examples`.
struct Example {
    static let root = packageRoot
    static let todos = Example(name: "todos-web")
    static let chat = Example(name: "chat-web")

    let name: String

    func file(_ path: String) -> URL { Self.root.appending(path: "Examples/\(name)/\(path)") }
}
