internal import Bytes
internal import Synchronization

/// Types that a caller may name for the generic parameters of a method.
///
/// A type goes by the name that people read and write, `Bank.Account`; one that has none which other programs know, by its mangled
/// name. Both are looked up in a table of types that the program has named: the runtime, asked for a type by a peer's text, would
/// build types without end.
package enum GenericTypes {
    private static let known: Mutex<[String: any Any.Type]> = {
        let types: [any (Codable & Sendable).Type] = [
            Bool.self, Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self, UInt16.self,
            UInt32.self, UInt64.self, Float.self, Double.self, String.self, [Int].self, [String].self, [Double].self,
            [Bool].self, [String: Int].self, [String: String].self, [String: Double].self, [String: Bool].self,
        ]
        var table: [String: any Any.Type] = [:]
        for type in types { add(type, to: &table) }
        return Mutex(table)
    }()

    /// Lets callers name a type.
    package static func register(_ type: any Any.Type) { known.withLock { add(type, to: &$0) } }

    private static func add(_ type: any Any.Type, to table: inout [String: any Any.Type]) {
        let readable = _typeName(type, qualified: true)
        table[readable] = type
        if readable.hasPrefix("Swift.") { table[String(readable.dropFirst("Swift.".count))] = type }
        if let mangled = _mangledTypeName(type) { table[mangled] = type }
    }

    /// Throws for one that nobody has named.
    static func type(named name: String) throws(TrebuchetError) -> any Any.Type {
        if let type = known.withLock({ $0[name] }) { return type }
        throw TrebuchetError(
            .invalidArguments,
            "type '\(name.prefix(bytes: 128))' is not known to the server as one for generic parameters: it names its own with "
                + "server.register(genericTypes:)")
    }

    static func name(of type: any Any.Type) -> String {
        let readable = _typeName(type, qualified: true)
        // Of a private or local type the readable name has the place of its context in memory, which no other program knows.
        return readable.contains("(") ? _mangledTypeName(type) ?? readable : readable
    }
}
