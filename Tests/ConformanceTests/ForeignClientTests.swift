import Foundation
import Testing
import TrebuchetTesting

/// PyPI's `websockets` against `trebuchet serve`, each in a process of its own.
@Suite(.timeLimit(.minutes(1))) struct ForeignClientTests {
    @Test("a Python client calls and observes with the JSON of version 3 typed by hand")
    func version3() throws { try run("version3", []) }

    @Test("a Python client of versions 1 and 2 is served as before: base64, mangled names, binary messages")
    func versions1and2() throws {
        // `distributed thunk` of TrebuchetCLI.Counter.add(_:), as an existing client sends it.
        try run("versions1and2", ["$s12TrebuchetCLI7CounterC3addyS2iYaKFTE"])
    }

    private func run(_ script: String, _ arguments: [String]) throws {
        let server = try ServeProcess()
        defer { server.stop() }
        let path = try #require(Bundle.module.path(forResource: script, ofType: "py", inDirectory: "Scripts"))
        let process = Process()
        process.executableURL = try Self.python()
        process.arguments = [path, server.url] + arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(text)")
        #expect(text == "ok\n")
    }

    /// The interpreter that scripts/test has prepared.
    private static func python() throws -> URL {
        let prepared = ".build/python/bin/python"
        let path = ProcessInfo.processInfo.environment["TREBUCHET_PYTHON"] ?? prepared
        let exists = FileManager.default.isExecutableFile(atPath: path)
        try #require(
            exists, "there is no Python with 'websockets' at \(path); run scripts/test once, which prepares it")
        return URL(fileURLWithPath: path)
    }
}
