/// A setting of a type, or of one of its groups: a stored property whose type is declared in the type.
struct DocumentedSetting {
    /// The names of its groups and its name: `calls.perConnection`.
    let path: String
    let name: String
    /// The name of the type that declares it.
    let type: String
    let value: Any

    /// Returns the settings of a type and its groups.
    ///
    /// - Parameter value: made by the type's initializer without arguments.
    static func all(of value: Any) -> [Self] {
        all(of: value, in: "", root: String(reflecting: Swift.type(of: value)) + ".")
    }

    private static func all(of value: Any, in path: String, root: String) -> [Self] {
        Mirror(reflecting: value).children.flatMap { child -> [Self] in
            guard let name = child.label else { return [] }
            if String(reflecting: Swift.type(of: child.value)).hasPrefix(root) {
                return all(of: child.value, in: "\(path)\(name).", root: root)
            }
            let type = String(describing: Swift.type(of: value))
            return [Self(path: path + name, name: name, type: type, value: child.value)]
        }
    }
}
