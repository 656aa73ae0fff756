import Foundation
import TestSupport
import Testing

/// Each step of a tutorial compiles, and what stands in it is what is compiled and run here.
@Suite(.timeLimit(.minutes(10))) struct TutorialStepTests {
    /// A tutorial's catalog, and the code files that each of its steps has come to, by the names that readers see.
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

        func urls(_ step: [String: String]) -> [URL] { step.values.sorted().map { resources.appending(path: $0) } }
    }

    private static let tutorials = [
        "Sources/Trebuchet/Trebuchet.docc/ShoppingListTutorial.tutorial",
        "Sources/WebSockets/WebSockets.docc/EchoTutorial.tutorial",
        "Sources/TrebuchetServices/TrebuchetServices.docc/ChatTutorial.tutorial",
    ]

    @Test("each step compiles without a warning, with the files of the steps before it", arguments: tutorials)
    func compiles(path: String) async throws {
        let tutorial = try Tutorial(path)
        #expect(tutorial.steps.count > 3)
        // The last is compiled with these tests.
        for step in tutorial.steps.dropLast() {
            let outcome = try await SwiftCompiler().run("Tutorial", tutorial.urls(step), ["-typecheck"])
            #expect(outcome.output == "")
            #expect(outcome.status == 0)
        }
    }

    @Test("what the last step has is what is run here", arguments: tutorials)
    func isRun(path: String) throws {
        let tutorial = try Tutorial(path)
        let here = SwiftCompiler().root.appending(path: "Tests/TutorialTests")
        for (name, file) in try #require(tutorial.steps.last) {
            let link = here.appending(path: name).resolvingSymlinksInPath()
            #expect(link.path == tutorial.resources.appending(path: file).resolvingSymlinksInPath().path)
        }
    }
}
