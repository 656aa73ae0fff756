package import Foundation

/// The compiler, invoked as for a user's package, with the modules of this build.
package struct SwiftCompiler: Sendable {
    package let root = packageRoot
    private let products = URL(filePath: ServeProcess.tool).deletingLastPathComponent()

    package init() {}

    /// Runs `body` with a temporary folder that is removed afterwards.
    package func withFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "SwiftCompiler-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder)
    }

    /// The compiler errors for a source, one line for each.
    package func errors(in source: String) async throws -> [String] {
        var output = ""
        try await withFolder { folder in
            let file = folder.appending(path: "App.swift")
            try source.write(to: file, atomically: true, encoding: .utf8)
            output = try await run("App", [file], ["-typecheck"]).output
        }
        return output.split(separator: "\n").map(String.init).filter {
            $0.contains(" error: ") && !$0.contains("`- error: ")
        }
    }

    /// - Parameter files: all files of the module.
    package func run(_ module: String, _ files: [URL], _ flags: [String]) async throws -> ChildProcess.Outcome {
        // The package name as SwiftPM derives it from a checkout.
        let package = String(root.lastPathComponent.lowercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
        var arguments = ["swiftc", "-module-name", module, "-swift-version", "6"]
        if !files.contains(where: { $0.lastPathComponent == "main.swift" }) { arguments.append("-parse-as-library") }
        // A separate module cache: the modules in that of the build may have been compiled by another path to the same folder.
        let cache = products.appending(path: "SwiftUITests.modules").path
        arguments += ["-package-name", package, "-module-cache-path", cache]
        for folder in ["Base/CEpoll", "Base/CZlib", "Base/COpenSSL", "Base/CCurl", "Server/CWebFiles/include"] {
            let map = root.appending(path: "Sources/\(folder)/module.modulemap").path
            arguments += ["-Xcc", "-fmodule-map-file=\(map)"]
        }
        for module in ["TrebuchetMacros", "StateMachineMacros"] {
            let plugin = products.appending(path: "\(module)-tool").path + "#\(module)"
            arguments += ["-Xfrontend", "-load-plugin-executable", "-Xfrontend", plugin]
        }
        arguments += flags + ["-I", products.appending(path: "Modules").path]
        return try await ChildProcess("/usr/bin/env", arguments + files.map(\.path), error: .merged).finish()
    }
}
