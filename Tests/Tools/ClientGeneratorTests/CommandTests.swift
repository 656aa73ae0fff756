import Foundation
import TestSupport
import Testing

/// `trebuchet-generate`, and `trebuchet generate`, which starts it.
@Suite struct CommandTests {
    private static let source = "import Trebuchet\n" + echo("Item", "struct Item: Codable { var at: Date }")

    /// Runs `body` with a folder of a package's sources.
    private func withSources(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let sources = folder.appending(path: "Sources/App")
            try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
            try Data(Self.source.utf8).write(to: sources.appending(path: "App.swift"))
            // Neither is read.
            try Data("struct Item {".utf8).write(to: sources.appending(path: ".hidden.swift"))
            try Data("struct Item {".utf8).write(to: sources.appending(path: "notes.txt"))
            try body(folder)
        }
    }

    @Test("a client is written, and compared with --check", arguments: ["trebuchet-generate", "trebuchet"])
    func write(program: String) throws {
        let tool = ServeProcess.built(program)
        let words = program == "trebuchet" ? ["generate", "typescript"] : ["typescript"]
        try withSources { folder in
            let output = folder.appending(path: "web/app.ts")
            let arguments = words + ["--output", "web/app.ts"]
            #expect(try Run(tool, arguments + ["--check"], in: folder).output.contains("'web/app.ts' does not exist"))
            let written = try Run(tool, arguments, in: folder)
            #expect(written.status == 0)
            #expect(written.output == "")
            let text = try String(contentsOf: output, encoding: .utf8)
            #expect(text.hasPrefix("// trebuchet generate typescript Sources\n"))
            #expect(!text.contains(folder.path))
            #expect(try Run(tool, words, in: folder).output == text)
            #expect(try Run(tool, arguments + ["--check"], in: folder).status == 0)
            // A file named twice is read once.
            #expect(try Run(tool, arguments + ["Sources", "./Sources/App/App.swift"], in: folder).status == 0)
            try Data(text.replacing("at: Date", with: "at: string").utf8).write(to: output)
            let check = try Run(tool, arguments + ["--check"], in: folder)
            #expect(check.status == 1)
            #expect(
                check.output.contains(
                    "'web/app.ts' is outdated; run the command without --check: line 8\n  is:            at: string\n"))
            #expect(try String(contentsOf: output, encoding: .utf8).contains("at: string"))
        }
    }

    @Test("errors have positions, and nothing is written")
    func errors() throws {
        let tool = ServeProcess.built("trebuchet-generate")
        try withSources { folder in
            try Data("@Trebuchet distributed actor A {\n  distributed func a(_ b: any Error) {}\n}".utf8)
                .write(to: folder.appending(path: "Sources/App/B.swift"))
            let run = try Run(tool, ["typescript", "--output", "app.ts"], in: folder)
            #expect(run.status == 1)
            #expect(run.output.hasPrefix("Sources/App/B.swift:2:27: error: 'any Error' is an existential"))
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "app.ts").path))
        }
    }

    @Test(
        "invalid arguments are reported",
        arguments: [
            ([], 2, "pass 'typescript', 'schema' or 'openapi'"), (["kotlin"], 2, "unknown command 'kotlin'"),
            (["typescript", "--check"], 2, "--check requires --output FILE"),
            (["typescript", "--bad"], 2, "unknown option --bad"),
            (["typescript", "--output"], 2, "--output requires a value"),
            (["typescript", "nowhere"], 1, "'nowhere' does not exist"),
            (["schema", "--help"], 0, "usage: trebuchet-generate"),
            (["openapi", "--actor", "Desk"], 2, "--actor requires TYPE=NAME"),
            (["openapi", "--actor", "Desk=a//b"], 2, "--actor requires TYPE=NAME"),
        ])
    func wrongUse(arguments: [String], status: Int32, message: String) throws {
        let run = try Run(ServeProcess.built("trebuchet-generate"), arguments, in: Checkout.root)
        #expect(run.status == status)
        #expect(run.output.contains(message))
    }

    @Test("without trebuchet-generate beside it, trebuchet reports what to do")
    func alone() throws {
        try withTemporaryFolder { folder in
            let copy = folder.appending(path: "trebuchet")
            // By another process: a child that a test starts meanwhile would briefly inherit the file open for writing.
            #expect(try Run("cp", [ServeProcess.built("trebuchet"), copy.path], in: folder).status == 0)
            let run = try Run(copy.path, ["generate", "schema"], in: folder)
            #expect(run.status == 1)
            #expect(run.output.contains("\(folder.path)/trebuchet-generate does not exist"))
            #expect(run.output.contains("swift build --product trebuchet-generate"))
        }
    }

    @Test("the server's program does not contain swift-syntax")
    func noSyntax() throws {
        func links(_ program: String) throws -> Bool {
            try Run("ldd", [ServeProcess.built(program)], in: Checkout.root).output.contains("libSwiftSyntax")
        }
        #expect(try links("trebuchet-generate"))
        #expect(try !links("trebuchet"))
    }
}
