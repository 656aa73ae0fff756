/// Embeds a payload in a case of an enum, and extracts it.
public struct AnyCasePath<Root, Value>: Sendable {
    /// The name of the case; empty for a path through several cases.
    let name: StaticString
    private let embedding: @Sendable (Value) -> Root
    private let extraction: @Sendable (Root) -> Value?

    /// Creates a path from two closures.
    ///
    /// - Parameters:
    ///   - name: the name of the case, as a test store shows it; empty for a path through several cases.
    ///   - embed: returns the case with a payload.
    ///   - extract: returns the payload, or nil for another case.
    public init(
        name: StaticString = "", embed: @escaping @Sendable (Value) -> Root,
        extract: @escaping @Sendable (Root) -> Value?
    ) {
        self.name = name
        embedding = embed
        extraction = extract
    }

    /// Creates the path of a case key path.
    public init(_ path: CaseKeyPath<Root, Value>) {
        let found = Case<Root>()[keyPath: path]
        name = ""
        // A key path of this type begins at `Root`, so its embedded values have that type.
        embedding = { found.embed($0) as! Root }
        extraction = { found.extract($0) }
    }

    /// Returns the case with this payload.
    public func embed(_ value: Value) -> Root { embedding(value) }

    /// Returns the payload, or nil when `root` is another case.
    public func extract(_ root: Root) -> Value? { extraction(root) }
}
