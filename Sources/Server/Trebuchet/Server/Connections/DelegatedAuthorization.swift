/// The actors of services whose callers need the permission for another actor. The result of a query, for example, needs the permission
/// for its collection.
///
/// The server looks up the whole name of an actor. A name that contains a false owner therefore reaches no actor.
struct DelegatedAuthorization {
    /// Returns the actor and the target that `authorize` decides about, or nil where the name is not a helper's.
    typealias Owner = @Sendable (_ actorID: String) -> (actorID: String, target: String)?

    private var owners: [(prefix: String, owner: Owner)] = []

    mutating func addOwner(_ prefix: String, _ owner: @escaping Owner) { owners.append((prefix, owner)) }

    /// Returns the actor and the target that `authorize` decides about: those of the call itself where the actor is no helper.
    func subject(of target: String, _ actorID: String) -> (actorID: String, target: String) {
        for (prefix, owner) in owners where actorID.utf8.starts(with: prefix.utf8) {
            if let subject = owner(actorID) { return subject }
        }
        return (actorID, target)
    }
}
