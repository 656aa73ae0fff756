/// A leaf of a `LeafTree`: a sequence of elements of any type.
///
/// `@unchecked Sendable`: code changes a leaf only after it has checked that it holds the only reference.
@usableFromInline
class AnyLeaf: @unchecked Sendable {
    @inlinable
    init() {}

    @usableFromInline func copy() -> AnyLeaf { fatalError("of a subclass") }
    /// Returns the hashes of the elements' ids.
    @usableFromInline func hashes() -> [Int] { fatalError("of a subclass") }
    /// Moves the elements from `position` on into a new leaf.
    @usableFromInline func split(at position: Int) -> AnyLeaf { fatalError("of a subclass") }
    /// Appends the elements of a leaf of the same type.
    @usableFromInline func append(_ other: AnyLeaf) { fatalError("of a subclass") }
}

/// A leaf with elements of a type. `@unchecked Sendable` for the reason stated at `AnyLeaf`.
@usableFromInline
final class Leaf<Element: Identifiable & Sendable>: AnyLeaf, @unchecked Sendable {
    @usableFromInline var elements: [Element]

    @inlinable
    init(_ elements: [Element]) { self.elements = elements }

    @inlinable override func copy() -> AnyLeaf { Leaf(elements) }

    @inlinable override func hashes() -> [Int] { elements.map(\.id.hashValue) }

    @inlinable
    override func split(at position: Int) -> AnyLeaf {
        let tail = Leaf(Array(elements[position...]))
        elements.removeSubrange(position...)
        return tail
    }

    @inlinable
    override func append(_ other: AnyLeaf) {
        elements += unsafeDowncast(other, to: Leaf.self).elements
    }
}
