import Foundation
import TestSupport
import Testing

/// SwiftPM builds a plugin's tool as a product of its target's name, and finds none where the product has another name alone.
@Suite struct PluginToolTests {
    @Test("the tool of each plugin is a product under its own name")
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
