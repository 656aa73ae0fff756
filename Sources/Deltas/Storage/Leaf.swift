/// Elements that stand one behind the other, whatever their type: what trees of leaves are made of.
///
/// `@unchecked Sendable`: a leaf is changed only by who has just seen that nobody else refers to it.
@usableFromInline
class AnyLeaf: @unchecked Sendable {
    @inlinable
    init() {}

    @usableFromInline func copy() -> AnyLeaf { fatalError("of a subclass") }
    /// The hashes of the ids of the elements.
    @usableFromInline func hashes() -> [Int] { fatalError("of a subclass") }
    /// Moves the elements from a place on into a leaf of their own.
    @usableFromInline func split(at place: Int) -> AnyLeaf { fatalError("of a subclass") }
    /// Appends the elements of a leaf of the same kind.
    @usableFromInline func append(_ other: AnyLeaf) { fatalError("of a subclass") }
}

/// `@unchecked Sendable` as `AnyLeaf`.
@usableFromInline
final class Leaf<Element: Identifiable & Sendable>: AnyLeaf, @unchecked Sendable {
    @usableFromInline var elements: [Element]

    @inlinable
    init(_ elements: [Element]) { self.elements = elements }

    @inlinable override func copy() -> AnyLeaf { Leaf(elements) }

    @inlinable override func hashes() -> [Int] { elements.map(\.id.hashValue) }

    @inlinable
    override func split(at place: Int) -> AnyLeaf {
        let tail = Leaf(Array(elements[place...]))
        elements.removeSubrange(place...)
        return tail
    }

    @inlinable
    override func append(_ other: AnyLeaf) {
        elements += unsafeDowncast(other, to: Leaf.self).elements
    }
}
