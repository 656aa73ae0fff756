internal import Trebuchet

/// What becomes of an account as a whole.
extension Accounts {
    // MARK: Another address

    func sendAddressCode(
        to email: String, for connection: CallerConnection
    ) async throws(AuthError) -> SendMagicCodeResponse {
        let address = try MailAddress(email)
        return try await noting("to send a code to \(address.text)", connection) { () throws(AuthError) in
            let present = try await present(on: connection)
            // Whoever gives an account another address has it for good: a session that somebody has got hold of is not enough.
            guard isFresh(present) else { throw .notFresh }
            return try await sendCode(to: address, .address(account: present.id), for: connection)
        }
    }

    func changeAddress(
        to email: String, code: String, on connection: CallerConnection
    ) async throws(AuthError) -> User {
        let address = try MailAddress(email)
        return try await noting("the address \(address.text)", connection) { () throws(AuthError) in
            let asked = try await present(on: connection)
            try await useCode(code, for: address, .address(account: asked.id), on: connection)
            let (user, before) = try await inTurn { turn throws(AuthError) in
                let present = try await present(on: connection, in: turn)
                guard present.id == asked.id else { throw .notSignedIn }
                if let owner = try await turn.owner(ofAddress: address.text), owner != present.id {
                    throw .addressTaken
                }
                var account = present.account
                let before = account.email
                account.email = address.text
                var changes = AccountRecords.Changes()
                if let before {
                    _ = try await turn.owner(ofAddress: before)
                    changes.set(owner: nil, ofAddress: before)
                }
                changes.set(owner: present.id, ofAddress: address.text)
                try changes.set(account, id: present.id)
                let user = account.user(id: present.id)
                changes.change(user, sessions: account.sessions)
                changes.count.replace(present.account, with: account)
                try await write(changes, in: turn)
                return (user, before == address.text ? nil : before)
            }
            if let before { await tell(before, .addressChanged(to: address.text)) }
            return user
        }
    }

    /// Tells somebody by mail. What was done stays done when that fails.
    private func tell(_ address: String, _ notice: AccountNotice) async {
        do {
            try await mailer.send(notice, to: address)
        } catch {
            log.mailFailed("a notice was not sent: \(error)")
        }
    }

    /// Whether somebody has just signed in. A guest has nothing to sign in with again.
    private func isFresh(_ present: Present) -> Bool {
        present.account.isGuest || now() - (present.family.created ?? 0) < limits.freshSignIn.wholeMilliseconds
    }

    // MARK: The end

    /// - Parameter code: one to sign in with, that was sent to the account's address; nil for who has just signed in.
    func deleteAccount(code: String?, on connection: CallerConnection) async throws(AuthError) {
        try await noting("to delete an account", connection) { () throws(AuthError) in
            try await takeRenewal(connection)
            let asked = try await present(on: connection)
            if let code {
                guard let email = asked.account.email else { throw .notFresh }
                try await useCode(code, for: try MailAddress(email), .signIn, on: connection)
            } else {
                guard isFresh(asked) else { throw .notFresh }
            }
            do {
                // Not in turn: it may take its time, and others sign in meanwhile.
                try await deletionHook?(asked.account.user(id: asked.id))
            } catch {
                log.storeFailed("the data of account \(asked.id) was not deleted: \(error)")
                throw .notDeleted
            }
            _ = try await delete(
                asked.id, because: .accountDeleted, leaving: connection.session == asked.session ? connection : nil)
        }
    }

    /// Deletes what is kept of an account, and ends its sessions; false when there is none.
    ///
    /// - Parameter connection: one that goes on as nobody.
    func delete(
        _ id: String, because end: SessionEnd, leaving connection: CallerConnection? = nil
    ) async throws(AuthError) -> Bool {
        try await inTurn { turn throws(AuthError) in
            guard let account = try await turn.account(id) else { return false }
            var changes = AccountRecords.Changes()
            for session in account.sessions { changes.end(session, because: end) }
            if let email = account.email { changes.set(owner: nil, ofAddress: email) }
            for identity in account.identities ?? [] { changes.set(owner: nil, ofIdentity: identity) }
            try changes.set(nil, id: id)
            changes.count.replace(account, with: nil)
            try await write(changes, in: turn)
            if let connection { connections.signOut(connection) }
            for session in account.sessions { connections.end(session, because: end, at: now()) }
            log.deleted(id)
            return true
        }
    }
}
