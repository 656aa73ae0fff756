@_spi(PluginMessage) import SwiftCompilerPluginMessageHandling
import SwiftSyntaxMacros

/// The compiler plugin. The compiler starts this program and requests macro expansions over standard input and output.
@main
struct Plugin {
    static func main() throws {
        let listener = CompilerPluginMessageListener(
            connection: try StandardIOMessageConnection(), provider: Provider())
        try listener.main()
    }
}

/// Finds the macros by their type names.
struct Provider: PluginProvider {
    private static var macros: [String: any Macro.Type] {
        [
            "TrebuchetMacro": TrebuchetMacro.self, "StreamedStateMacro": StreamedStateMacro.self,
            "StreamedEventsMacro": StreamedEventsMacro.self,
            "IdempotentMacro": IdempotentMacro.self, "RedactedMacro": RedactedMacro.self,
            "HTTPMacro": HTTPMacro.self,
            "WireMacro": WireMacro.self,
        ]
    }

    func resolveMacro(moduleName: String, typeName: String) throws -> any Macro.Type {
        guard let macro = Self.macros[typeName] else { throw UnknownMacro(name: typeName) }
        return macro
    }
}

/// The error for a macro that this plugin does not contain.
struct UnknownMacro: Error {
    let name: String
}
