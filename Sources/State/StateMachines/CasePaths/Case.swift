/// A key path to the payload of a case: `\.child` or, through nested enums, `\.ioResult.success`.
public typealias CaseKeyPath<Root, Value> = KeyPath<Case<Root>, Case<Value>>

/// The root and the components of a case key path. It need not be written explicitly.
@dynamicMemberLookup
public struct Case<Value>: Sendable {
    /// The names of the components: cases, as in `.child`, and other steps, as in `[id: 1]`.
    let names: [String]
    let embed: @Sendable (Value) -> Any
    let extract: @Sendable (Any) -> Value?

    /// Creates the empty path: the value itself.
    init() {
        names = []
        embed = { $0 }
        extract = { $0 as? Value }
    }

    private init(
        names: [String], embed: @escaping @Sendable (Value) -> Any, extract: @escaping @Sendable (Any) -> Value?
    ) {
        self.names = names
        self.embed = embed
        self.extract = extract
    }

    /// The next component of a key path: the payload of the case with this name.
    public subscript<Payload>(
        dynamicMember path: KeyPath<Value.AllCasePaths, AnyCasePath<Value, Payload>>
    ) -> Case<Payload> where Value: CasePathable {
        let next = Value.allCasePaths[keyPath: path]
        return appending(".\(next.name)", embed: next.embed, extract: next.extract)
    }

    /// Returns the path extended by one component.
    func appending<Next>(
        _ name: String, embed next: @escaping @Sendable (Next) -> Value,
        extract nextExtract: @escaping @Sendable (Value) -> Next?
    ) -> Case<Next> {
        Case<Next>(
            names: names + [name],
            embed: { [embed] in embed(next($0)) },
            extract: { [extract] in extract($0).flatMap(nextExtract) })
    }
}
