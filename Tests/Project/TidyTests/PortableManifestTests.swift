import Foundation
import TestSupport
import Testing

/// The manifest for platforms without the package's sockets, as SwiftPM reads it.
@Suite(.timeLimit(.minutes(5))) struct PortableManifestTests {
    /// The required part of the output of `swift package dump-package`.
    private struct Dump: Decodable {
        struct Target: Decodable {
            let name: String
            let dependencies: [Dependency]
        }
        struct Product: Decodable {
            let name: String
            let targets: [String]
        }
        /// The first element of the list is the name; the others are the package of a product, or a condition.
        struct Dependency: Decodable {
            let target: String?
            let product: String?

            private enum Kind: String, CodingKey { case byName, target, product }

            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Kind.self)
                func name(_ kind: Kind) throws -> String? {
                    guard container.contains(kind) else { return nil }
                    var list = try container.nestedUnkeyedContainer(forKey: kind)
                    return try list.decode(String.self)
                }
                target = try name(.byName) ?? name(.target)
                product = try name(.product)
            }
        }

        let targets: [Target]
        let products: [Product]
    }

    /// - Parameter variables: additional environment variables, as `NAME=value`.
    private func dump(_ variables: String...) async throws -> Dump {
        let path = try #require(ProcessInfo.processInfo.environment["PATH"])
        let swift = try #require(
            path.split(separator: ":").map { $0 + "/swift" }.first { FileManager.default.isExecutableFile(atPath: $0) })
        let scratch = FileManager.default.temporaryDirectory.appending(path: "portable-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: scratch) }
        let folders = ["--package-path", Repository.root.path, "--scratch-path", scratch.path]
        let process = try ChildProcess(
            "/usr/bin/env", variables + [swift, "package"] + folders + ["dump-package"], error: .captured)
        let outcome = await process.finish()
        try #require(outcome.status == 0, "\(outcome.error)")
        return try JSONDecoder().decode(Dump.self, from: Data(outcome.output.utf8))
    }

    @Test("no target of the portable manifest depends on a server's module, or on an excluded one")
    func targets() async throws {
        let dump = try await dump("TREBUCHET_PORTABLE=1")
        let names = Set(dump.targets.map(\.name))
        #expect(names.isSuperset(of: ["TrebuchetClient", "TrebuchetMacros", "TrebuchetServicesClient", "SharedModel"]))
        #expect(names.isDisjoint(with: ["Networking", "WebSockets", "Trebuchet", "COpenSSL", "TrebuchetServices"]))
        for target in dump.targets {
            let left = Set(target.dependencies.compactMap(\.target)).subtracting(names)
            #expect(left.isEmpty, "\(target.name)")
            #expect(target.dependencies.allSatisfy { $0.product == nil }, "\(target.name)")
        }
        for name in ["TrebuchetClient", "TrebuchetServicesModel", "TrebuchetServicesClient"] {
            #expect(dump.products.contains { $0.name == name })
        }
        for product in dump.products { #expect(names.isSuperset(of: product.targets), "\(product.name)") }
    }

    @Test("without swift-syntax in the toolchain, all targets that parse Swift use the package")
    func syntax() async throws {
        let dump = try await dump("TREBUCHET_SYNTAX=package")
        let readers = Set(
            try Repository.current.get().files.filter { file in
                ImportRules.imports(of: file).contains { $0.module == "SwiftSyntax" }
            }.compactMap(\.module))
        #expect(readers.isSuperset(of: ["TrebuchetMacros", "StateMachineMacros"]))
        for target in dump.targets where readers.contains(target.name) {
            let products = Set(target.dependencies.compactMap(\.product))
            // The names of the package's products, some of which differ from those of its modules.
            let wanted: Set = [
                "SwiftSyntax", "SwiftSyntaxMacros", "SwiftParser", "_SwiftCompilerPluginMessageHandling",
            ]
            #expect(products.isSuperset(of: wanted), "\(target.name)")
            #expect(!products.contains("SwiftCompilerPluginMessageHandling"), "\(target.name)")
        }
    }
}
