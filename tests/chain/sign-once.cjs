// Signs a payment for one URL and does not send it: prints {"header", "value", "payer"}, so that a test can send the very
// same payment as often as it likes. Usage: node sign-once.cjs URL v1|v2|permit2|upto, env BUYER_KEY.
const [url, version] = process.argv.slice(2);
const key = process.env.BUYER_KEY;

async function buyer(fetcher) {
  if (version === "v1") {
    const { wrapFetchWithPayment, createSigner } = require("x402-fetch");
    const signer = await createSigner("base-sepolia", key);
    return { pay: wrapFetchWithPayment(fetcher, signer, 1_000_000n), payer: signer.account.address };
  }
  const { wrapFetchWithPayment, x402Client } = require("@x402/fetch");
  const { registerExactEvmScheme } = require("@x402/evm/exact/client");
  const { privateKeyToAccount } = require("viem/accounts");
  const account = privateKeyToAccount(key);
  const by = r => r.scheme === "upto" ? "upto" : r.extra?.assetTransferMethod === "permit2" ? "permit2" : "v2";
  const wanted = (_v, offers) => offers.filter(offer => by(offer) === version);
  const client = registerExactEvmScheme(new x402Client(), { signer: account, policies: [wanted] });
  const { UptoEvmScheme } = require("@x402/evm/upto/client");
  client.register("eip155:*", new UptoEvmScheme(account));
  client.setSpendControls({ allowedAssets: true, maxAmountPerPayment: false });
  return { pay: wrapFetchWithPayment(fetcher, client), payer: account.address };
}

(async () => {
  const name = version === "v1" ? "x-payment" : "payment-signature";
  let value = null;
  const hold = async (input, init) => {
    const headers = input instanceof Request ? input.headers : new Headers(init?.headers);
    value = headers.get(name);
    return value ? new Response("{}", { status: 200 }) : fetch(input, init);
  };
  const { pay, payer } = await buyer(hold);
  await pay(version === "v1" ? url : new Request(url));
  if (!value) throw new Error("the client signed nothing");
  console.log(JSON.stringify({ header: name, value, payer }));
})().catch(e => { console.error(e); process.exit(1); });
