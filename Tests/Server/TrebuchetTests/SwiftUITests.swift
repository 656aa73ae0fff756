import Foundation
import TestSupport
import Testing

/// Type-checks the client's SwiftUI support against a stub module SwiftUI that has only declarations: the client is compiled as on
/// platforms with SwiftUI, and app-like views against the result.
@Suite(.timeLimit(.minutes(5))) struct SwiftUITests {
    private typealias Outcome = ChildProcess.Outcome

    private let compiler = SwiftCompiler()
    private let samples = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "SwiftUI")

    private func withFolder(_ body: (URL) async throws -> Void) async throws {
        try await compiler.withFolder(body)
    }

    private func swiftc(_ module: String, _ files: [URL], in folder: URL, _ flags: [String]) async throws -> Outcome {
        try await compiler.run(module, files, ["-I", folder.path] + flags)
    }

    private func emitStub(in folder: URL) async throws -> Outcome {
        let path = folder.appending(path: "SwiftUI.swiftmodule").path
        let stub = samples.appending(path: "Stub.swift")
        return try await swiftc("SwiftUI", [stub], in: folder, ["-emit-module", "-emit-module-path", path])
    }

    /// Compiles the whole module, since its views use internal declarations. Files in `replaced` substitute those of their names.
    private func emitClient(in folder: URL, replaced: [URL] = []) async throws -> Outcome {
        let sources = compiler.root.appending(path: "Sources/Client/TrebuchetClient")
        let paths = try #require(FileManager.default.enumerator(atPath: sources.path)?.compactMap { $0 as? String })
        let files = paths.filter { $0.hasSuffix(".swift") }.map { path in
            let file = sources.appending(path: path)
            return replaced.first { $0.lastPathComponent == file.lastPathComponent } ?? file
        }
        let features = ["ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility"]
            .flatMap { ["-enable-upcoming-feature", $0] }
        let path = folder.appending(path: "TrebuchetClient.swiftmodule").path
        return try await swiftc(
            "TrebuchetClient", files, in: folder, features + ["-wmo", "-emit-module", "-emit-module-path", path])
    }

    /// Expects neither errors nor warnings.
    private func expectSilence(_ outcome: Outcome, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(outcome.status == 0, sourceLocation: sourceLocation)
        #expect(outcome.output == "", sourceLocation: sourceLocation)
    }

    /// A copy of a file with one text replaced.
    private func copy(_ file: URL, replacing old: String, with new: String, in folder: URL) throws -> URL {
        let text = try String(contentsOf: file, encoding: .utf8)
        try #require(text.contains(old))
        let copy = folder.appending(path: file.lastPathComponent)
        try text.replacingOccurrences(of: old, with: new).write(to: copy, atomically: true, encoding: .utf8)
        return copy
    }

    @Test("the property wrapper, the modifier and views that use them compile with SwiftUI")
    func views() async throws {
        try await withFolder { folder in
            expectSilence(try await emitStub(in: folder))
            expectSilence(try await emitClient(in: folder))
            let views = samples.appending(path: "Views.swift")
            expectSilence(try await swiftc("App", [views], in: folder, ["-typecheck"]))
            let broken = try copy(views, replacing: "$state.retry()", with: "$state.repeat()", in: folder)
            let refusal = try await swiftc("App", [broken], in: folder, ["-typecheck"])
            #expect(refusal.status == 1)
            #expect(refusal.output.contains("has no member 'repeat'"), "\(refusal.output)")
        }
    }

    @Test("a mistake in the SwiftUI part is found")
    func brokenFile() async throws {
        try await withFolder { folder in
            #expect(try await emitStub(in: folder).status == 0)
            let file = compiler.root.appending(
                path: "Sources/Client/TrebuchetClient/Observation/ObservedActor+SwiftUI.swift")
            let broken = try copy(file, replacing: "storage.observer.obs", with: "storage.obs", in: folder)
            let outcome = try await emitClient(in: folder, replaced: [broken])
            #expect(outcome.status == 1)
            #expect(outcome.output.contains("has no member 'observesTheSame'"), "\(outcome.output)")
        }
    }
}
