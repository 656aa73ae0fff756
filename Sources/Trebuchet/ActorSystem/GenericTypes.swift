/// Types that a caller may name for the generic parameters of a method.
///
/// Our client sends the mangled name of a type, which the runtime finds in the program; people write the readable one.
enum GenericTypes {
    /// Longer names are refused: they could make the runtime build types without end.
    static let longestName = 256

    private static let readable: [String: Any.Type] = {
        let types: [any (Codable & Sendable).Type] = [
            Bool.self, Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self, UInt16.self,
            UInt32.self, UInt64.self, Float.self, Double.self, String.self, [Int].self, [String].self, [Double].self,
            [Bool].self, [String: Int].self, [String: String].self, [String: Double].self, [String: Bool].self,
        ]
        return Dictionary(uniqueKeysWithValues: types.map { (_typeName($0, qualified: true), $0) })
    }()

    static func type(named name: String) -> Any.Type? {
        guard name.utf8.count <= longestName else { return nil }
        return readable[name] ?? readable["Swift." + name] ?? _typeByName(name)
    }

    static func name(of type: Any.Type) -> String {
        let readableName = _typeName(type, qualified: true)
        if readable[readableName] != nil { return readableName }
        return _mangledTypeName(type) ?? readableName
    }
}
