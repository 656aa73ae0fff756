internal import Bytes
internal import Synchronization

/// The types that a caller may name as generic arguments of a method: those of the standard library, and those that one server
/// or client has registered.
///
/// A type has its readable name, such as `Bank.Account`, or its mangled name if other programs cannot know the readable one.
/// Both are looked up in a table of registered types: with a peer's text, the runtime could be made to create types without
/// limit.
package final class GenericTypes: Sendable {
    /// The types of the standard library alone.
    static let standard = GenericTypes()

    private let registered = Mutex<[String: any Any.Type]>([:])

    private static let predefined: Mutex<[String: any Any.Type]> = {
        let types: [any (Codable & Sendable).Type] = [
            Bool.self, Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self, UInt16.self,
            UInt32.self, UInt64.self, Float.self, Double.self, String.self, [Int].self, [String].self, [Double].self,
            [Bool].self, [String: Int].self, [String: String].self, [String: Double].self, [String: Bool].self,
        ]
        var table: [String: any Any.Type] = [:]
        for type in types { register(type, to: &table) }
        return Mutex(table)
    }()

    /// Registers a type that callers may name.
    package func register(_ type: any Any.Type) { registered.withLock { Self.register(type, to: &$0) } }

    private static func register(_ type: any Any.Type, to table: inout [String: any Any.Type]) {
        let readable = _typeName(type, qualified: true)
        table[readable] = type
        if readable.hasPrefix("Swift.") { table[String(readable.dropFirst("Swift.".count))] = type }
        if let mangled = _mangledTypeName(type) { table[mangled] = type }
    }

    /// Returns the type with this name. Throws if it is not registered.
    func type(named name: String) throws(TrebuchetError) -> any Any.Type {
        if let type = Self.predefined.withLock({ $0[name] }) ?? registered.withLock({ $0[name] }) { return type }
        throw TrebuchetError(
            .invalidArguments,
            "type '\(name.prefix(bytes: 128))' is not registered for generic parameters where the actor lives: register it there "
                + "with register(genericTypes:)")
    }

    static func name(of type: any Any.Type) -> String {
        let readable = _typeName(type, qualified: true)
        // The readable name of a private or local type contains the address of its context, which other programs do not know.
        return readable.contains("(") ? _mangledTypeName(type) ?? readable : readable
    }
}
