/// How to put a payload into a case of an enum, and how to get it out again.
public struct AnyCasePath<Root, Value>: Sendable {
    /// The name of the case; empty for a path through several.
    let name: StaticString
    private let embedding: @Sendable (Value) -> Root
    private let extraction: @Sendable (Root) -> Value?

    /// - Parameters:
    ///   - name: of the case, as a test store names it; empty for a path through several.
    ///   - embed: the case with a payload.
    ///   - extract: the payload, or nil when the value is another case.
    public init(
        name: StaticString = "", embed: @escaping @Sendable (Value) -> Root,
        extract: @escaping @Sendable (Root) -> Value?
    ) {
        self.name = name
        embedding = embed
        extraction = extract
    }

    /// The path that a case key path names.
    public init(_ path: CaseKeyPath<Root, Value>) {
        let found = Case<Root>()[keyPath: path]
        name = ""
        // A key path of this type begins at `Root`, so what it embeds is one.
        embedding = { found.embed($0) as! Root }
        extraction = { found.extract($0) }
    }

    /// The case with this payload.
    public func embed(_ value: Value) -> Root { embedding(value) }

    /// The payload, or nil when `root` is another case.
    public func extract(_ root: Root) -> Value? { extraction(root) }
}
