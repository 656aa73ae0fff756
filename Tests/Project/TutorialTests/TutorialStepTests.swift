import Foundation
import TestSupport
import Testing

/// Each step of a tutorial compiles, and its content is compiled and run here.
@Suite(.timeLimit(.minutes(10))) struct TutorialStepTests {
    /// A tutorial's catalog, and the code files of each of its steps, by the names that readers see.
    private struct Tutorial {
        let resources: URL
        let steps: [[String: String]]

        init(_ path: String) throws {
            let file = SwiftCompiler().root.appending(path: path)
            resources = file.deletingLastPathComponent().appending(path: "Resources")
            var files: [String: String] = [:]
            steps = try String(contentsOf: file, encoding: .utf8)
                .matches(of: /@Code\(name: "([^"]+)", file: "([^"]+)"\)/)
                .map { match in
                    files[String(match.1)] = String(match.2)
                    return files
                }
        }

        /// The tutorial's sources, under the names that readers see: the compiler treats `main.swift` as the program.
        func copy(_ step: [String: String], to folder: URL) throws -> [URL] {
            try step.filter { $0.key != "Package.swift" }.sorted { $0.key < $1.key }.map { name, file in
                let copy = folder.appending(path: name)
                try FileManager.default.copyItem(at: resources.appending(path: file), to: copy)
                return copy
            }
        }
    }

    private static let tutorials = [
        "Sources/Server/Trebuchet/Trebuchet.docc/ShoppingListTutorial.tutorial",
        "Sources/Transport/WebSockets/WebSockets.docc/EchoTutorial.tutorial",
        "Sources/Services/TrebuchetServices/TrebuchetServices.docc/ChatTutorial.tutorial",
    ]

    @Test("each step compiles without a warning, with the files of the steps before it", arguments: tutorials)
    func compiles(path: String) async throws {
        let tutorial = try Tutorial(path)
        #expect(tutorial.steps.count > 3)
        var seen: Set<[String: String]> = []
        for step in tutorial.steps where seen.insert(step).inserted {
            try await SwiftCompiler().withFolder { folder in
                let files = try tutorial.copy(step, to: folder)
                guard !files.isEmpty else { return }
                let outcome = try await SwiftCompiler().run("Tutorial", files, ["-typecheck"])
                #expect(outcome.output == "")
                #expect(outcome.status == 0)
            }
        }
    }

    @Test("the manifests of the tutorial and of the beginners' guide are valid; the guide's code compiles")
    func manifests() async throws {
        let compiler = SwiftCompiler()
        let guide = compiler.root.appending(path: "Docs/Guides/GettingStarted.md")
        let blocks = try String(contentsOf: guide, encoding: .utf8).components(separatedBy: "```swift\n").dropFirst()
        let samples = blocks.compactMap {
            $0.components(separatedBy: "```").first
        }
        let manifest = try #require(samples.first { $0.contains("swift-tools-version") })
        let resources = compiler.root.appending(path: "Sources/Server/Trebuchet/Trebuchet.docc/Resources")
        let tutorials = try String(contentsOf: resources.appending(path: "ShoppingPackage.swift"), encoding: .utf8)
        for text in [manifest, tutorials] {
            try await compiler.withFolder { folder in
                try text.write(to: folder.appending(path: "Package.swift"), atomically: true, encoding: .utf8)
                let dump = ["swift", "package", "--package-path", folder.path, "dump-package"]
                let outcome = try await ChildProcess("/usr/bin/env", dump, error: .merged).finish()
                #expect(outcome.status == 0, "\(outcome.output)")
            }
        }
        let model = try #require(samples.first { $0.hasPrefix("public import Foundation") })
        #expect(model.contains("import TrebuchetClient\n") && !model.contains("import Trebuchet\n"))
        try await compiler.withFolder { folder in
            let file = folder.appending(path: "TodoList.swift")
            try model.write(to: file, atomically: true, encoding: .utf8)
            let module = folder.appending(path: "TodoModel.swiftmodule").path
            let outcome = try await compiler.run("TodoModel", [file], ["-emit-module", "-emit-module-path", module])
            #expect(outcome.output == "")
            #expect(outcome.status == 0)
            let main = folder.appending(path: "main.swift")
            try #require(samples.first { $0.contains("import TodoModel\n") })
                .write(to: main, atomically: true, encoding: .utf8)
            let program = try await compiler.run("todos", [main], ["-typecheck", "-I", folder.path])
            #expect(program.output == "")
            #expect(program.status == 0)
        }
    }

    @Test("the files of the last step are those run here", arguments: tutorials)
    func isRun(path: String) throws {
        let tutorial = try Tutorial(path)
        let here = SwiftCompiler().root.appending(path: "Tests/Project/TutorialTests")
        // A test has no `main.swift`, and a manifest is not one of its sources.
        for (name, file) in try #require(tutorial.steps.last) where !["Package.swift", "main.swift"].contains(name) {
            let link = here.appending(path: name).resolvingSymlinksInPath()
            #expect(link.path == tutorial.resources.appending(path: file).resolvingSymlinksInPath().path)
        }
    }
}
