@_spi(PluginMessage) import SwiftCompilerPluginMessageHandling
import SwiftSyntaxMacros

/// The compiler starts this program and asks it, over standard input and output, to expand macros.
@main
struct Plugin {
    static func main() throws {
        let listener = CompilerPluginMessageListener(
            connection: try StandardIOMessageConnection(), provider: Provider())
        try listener.main()
    }
}

struct Provider: PluginProvider {
    private static var macros: [String: any Macro.Type] {
        [
            "TrebuchetMacro": TrebuchetMacro.self, "StreamedStateMacro": StreamedStateMacro.self,
            "StreamedEventsMacro": StreamedEventsMacro.self,
            "IdempotentMacro": IdempotentMacro.self, "RedactedMacro": RedactedMacro.self,
            "WireMacro": WireMacro.self,
        ]
    }

    func resolveMacro(moduleName: String, typeName: String) throws -> any Macro.Type {
        guard let macro = Self.macros[typeName] else { throw UnknownMacro(name: typeName) }
        return macro
    }
}

struct UnknownMacro: Error {
    let name: String
}
