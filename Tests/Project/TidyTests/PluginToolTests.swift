import Foundation
import TestSupport
import Testing

/// SwiftPM builds a plugin's tool as a product with the name of its target, and finds none if the product has only another name.
@Suite struct PluginToolTests {
    @Test("the tool of each plugin is a product with the tool's name")
    func products() throws {
        let manifest = try String(contentsOf: Repository.root.appending(path: "Package.swift"), encoding: .utf8)
        let plugins = manifest.matches(
            of: /\.plugin\(\s*name: "(\w+)",\s*capability:.*?dependencies: \["(\w+)"\]/.dotMatchesNewlines())
        #expect(!plugins.isEmpty)
        for plugin in plugins {
            let tool = String(plugin.output.2)
            #expect(
                manifest.contains(".executable(name: \"\(tool)\", targets: [\"\(tool)\"])"),
                "'swift package' finds no tool \(tool) for \(plugin.output.1)")
        }
    }
}
